package rmqd.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.MessageExt;

/** A listener that keeps what it got. Several consumers may share one by views with a name each. */
final class Sink implements MessageListenerConcurrently {
    /** How long nothing more may come before "exactly once" is believed. */
    static final int QUIET_MS = 1500;

    private final List<MessageExt> got = new ArrayList<>();
    private final Map<String, Integer> byConsumer = new HashMap<>();

    @Override
    public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> msgs, ConsumeConcurrentlyContext context) {
        add("", msgs);
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }

    /** A listener that puts its messages here under a consumer's name. */
    MessageListenerConcurrently as(String consumer) {
        return (msgs, context) -> {
            add(consumer, msgs);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    synchronized void add(String consumer, List<MessageExt> msgs) {
        got.addAll(msgs);
        byConsumer.merge(consumer, msgs.size(), Integer::sum);
    }

    synchronized List<MessageExt> messages() {
        return new ArrayList<>(got);
    }

    synchronized int count(String consumer) {
        return byConsumer.getOrDefault(consumer, 0);
    }

    synchronized void clear() {
        got.clear();
        byConsumer.clear();
    }

    static String body(MessageExt m) {
        return new String(m.getBody(), java.nio.charset.StandardCharsets.UTF_8);
    }

    /** Waits for the bodies prefix0 ... prefix(n-1), then a quiet while: each came once and nothing else did. */
    List<MessageExt> exactlyOnce(String prefix, int n) throws Exception {
        Set<String> want = new HashSet<>();
        for (int i = 0; i < n; i++) {
            want.add(prefix + i);
        }
        return exactlyOnce(want);
    }

    /** Waits for the bodies; they may come more than once. */
    void awaitAll(Set<String> want) throws Exception {
        long end = System.nanoTime() + Env.DEADLINE_S * 1000000000L;
        while (!bodies().containsAll(want)) {
            Set<String> missing = new HashSet<>(want);
            missing.removeAll(bodies());
            Failure.require(System.nanoTime() < end, "received " + (want.size() - missing.size()) + " of "
                + want.size() + " messages, one that is missing: " + first(missing));
            Thread.sleep(20);
        }
    }

    List<MessageExt> exactlyOnce(Set<String> want) throws Exception {
        awaitAll(want);
        Thread.sleep(QUIET_MS);
        List<MessageExt> l = messages();
        Set<String> seen = new HashSet<>();
        for (MessageExt m : l) {
            String b = body(m);
            Failure.require(want.contains(b), "received a message that was not sent to it: " + brief(b));
            Failure.require(seen.add(b), "received twice: " + brief(b));
        }
        return l;
    }

    private Set<String> bodies() {
        Set<String> s = new HashSet<>();
        for (MessageExt m : messages()) {
            s.add(body(m));
        }
        return s;
    }

    private static String first(Set<String> s) {
        return s.isEmpty() ? "none" : brief(s.iterator().next());
    }

    private static String brief(String s) {
        return s.length() > 60 ? s.substring(0, 60) + "..." : s;
    }
}
