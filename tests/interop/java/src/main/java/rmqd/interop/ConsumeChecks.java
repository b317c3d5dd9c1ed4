package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Push consumers: what one consumer or one message goes through. */
final class ConsumeChecks {
    private ConsumeChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("tags", ConsumeChecks::tags);
        all.put("orderly", ConsumeChecks::orderly);
        all.put("orderly_suspend", ConsumeChecks::orderlySuspend);
        all.put("retry", ConsumeChecks::retry);
        all.put("offset_persistence", ConsumeChecks::offsetPersistence);
        all.put("latency", ConsumeChecks::latency);
        all.put("idle_poll", ConsumeChecks::idlePoll);
    }

    /** "A || B" selects at the broker: a queue with other tags only answers "no match", not with messages. */
    static void tags(Env env) throws Exception {
        String topic = env.topic(2);
        MessageQueue onlyC = env.queues(topic).get(0);
        MessageQueue mixed = env.queues(topic).get(1);
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 30; i++) {
            env.producer().send(new Message(topic, "TagC", ("c" + i).getBytes()), onlyC);
            for (String tag : new String[] {"TagA", "TagB", "TagC", ""}) {
                env.producer().send(new Message(topic, tag, (tag + i).getBytes()), mixed);
            }
            want.add("TagA" + i);
            want.add("TagB" + i);
        }
        Sink sink = new Sink();
        env.push(env.group(), topic, "TagA || TagB", sink);
        sink.exactlyOnce(want);

        DefaultMQPullConsumer c = PullChecks.pullConsumer(env, env.group());
        PullResult r = c.pull(onlyC, "TagA || TagB", 0, 32);
        equal(r.getPullStatus(), PullStatus.NO_MATCHED_MSG, "pull of a queue without matching tags");
        require(r.getNextBeginOffset() == 30, "the next offset must pass what does not match, it is "
            + r.getNextBeginOffset());
        r = c.pull(mixed, "TagB", 0, 32);
        equal(r.getPullStatus(), PullStatus.FOUND, "pull of a queue with matching tags");
        for (MessageExt m : r.getMsgFoundList()) {
            equal(m.getTags(), "TagB", "tag of a pulled message");
        }
    }

    /** Records per queue what came, and whether two threads were ever inside the same queue. */
    private static final class OrderSink {
        final Map<Integer, List<String>> perQueue = new ConcurrentHashMap<>();
        private final Map<Integer, AtomicInteger> inside = new ConcurrentHashMap<>();
        final AtomicInteger overlaps = new AtomicInteger();

        MessageListenerOrderly listener() {
            return (msgs, context) -> {
                int q = context.getMessageQueue().getQueueId();
                AtomicInteger in = inside.computeIfAbsent(q, k -> new AtomicInteger());
                if (in.incrementAndGet() > 1) {
                    overlaps.incrementAndGet();
                }
                for (MessageExt m : msgs) {
                    perQueue.computeIfAbsent(q, k -> Collections.synchronizedList(new ArrayList<>()))
                        .add(Sink.body(m));
                }
                try {
                    Thread.sleep(2);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                in.decrementAndGet();
                return ConsumeOrderlyStatus.SUCCESS;
            };
        }

        int total() {
            return perQueue.values().stream().mapToInt(List::size).sum();
        }
    }

    private static void sendOrdered(Env env, String topic, int from, int to) throws Exception {
        for (int i = from; i < to; i++) {
            for (int q = 0; q < 4; q++) {
                env.producer().send(new Message(topic, (q + ":" + i).getBytes()),
                    (mqs, m, arg) -> mqs.stream().filter(x -> x.getQueueId() == (int) arg).findFirst().get(), q);
            }
        }
    }

    private static void assertOrder(OrderSink sink, int n) throws Exception {
        Env.until("4 * " + n + " ordered messages", () -> sink.total() >= 4 * n);
        Thread.sleep(Sink.QUIET_MS);
        for (int q = 0; q < 4; q++) {
            List<String> got = sink.perQueue.get(q);
            equal(got.size(), n, "messages of queue " + q);
            for (int i = 0; i < n; i++) {
                equal(got.get(i), q + ":" + i, "message " + i + " of queue " + q);
            }
        }
        equal(sink.overlaps.get(), 0, "times that two threads worked on one queue");
    }

    /** Two ordered consumers keep the order of each queue, also when one leaves and gives its locks back. */
    static void orderly(Env env) throws Exception {
        String topic = env.topic(4);
        String group = env.group();
        OrderSink sink = new OrderSink();
        DefaultMQPushConsumer a = env.push(group, topic, "*", sink.listener());
        DefaultMQPushConsumer b = env.push(group, topic, "*", sink.listener());
        env.awaitShared(topic, 4, a, b);
        sendOrdered(env, topic, 0, 25);
        assertOrder(sink, 25);
        env.awaitAllCommitted(group, topic);
        a.shutdown();
        env.awaitShared(topic, 4, b);
        sendOrdered(env, topic, 25, 40);
        assertOrder(sink, 40);
    }

    /** SUSPEND_CURRENT_QUEUE_A_MOMENT gives the same message again before any later one of its queue. */
    static void orderlySuspend(Env env) throws Exception {
        String topic = env.topic(1);
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer c = env.newPush(env.group());
        c.setSuspendCurrentQueueTimeMillis(100);
        env.start(c, topic, "*", (MessageListenerOrderly) (msgs, context) -> {
            String body = Sink.body(msgs.get(0));
            got.add(body);
            boolean firstTime = Collections.frequency(got, body) == 1;
            return body.equals("n3") && firstTime ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
                : ConsumeOrderlyStatus.SUCCESS;
        });
        env.sendMany(topic, "n", 6);
        Env.until("seven calls", () -> got.size() >= 7);
        Thread.sleep(Sink.QUIET_MS);
        equal(got.toString(), "[n0, n1, n2, n3, n3, n4, n5]", "calls");
    }

    /** RECONSUME_LATER brings the message back through the retry topic, counted, with its own topic and id. */
    static void retry(Env env) throws Exception {
        String topic = env.topic(1);
        Again again = new Again();
        DefaultMQPushConsumer c = env.newPush(env.group());
        c.setPollNameServerInterval(1000);      // the route of the retry topic may come after the first look for it
        env.start(c, topic, "*", again);
        again.send(env, topic);
        again.await(topic);
    }

    /** A consumer that comes back goes on where the group was. */
    static void offsetPersistence(Env env) throws Exception {
        String topic = env.topic(4);
        String group = env.group();
        Sink first = new Sink();
        DefaultMQPushConsumer c = env.push(group, topic, "*", first);
        env.sendMany(topic, "one", 40);
        first.exactlyOnce("one", 40);
        env.awaitAllCommitted(group, topic);
        c.shutdown();
        env.sendMany(topic, "two", 40);
        Sink second = new Sink();
        env.push(group, topic, "*", second);
        second.exactlyOnce("two", 40);
        Sink other = new Sink();
        env.push(env.group(), topic, "*", other);
        Env.until("another group gets all 80", () -> other.messages().size() >= 80);
    }

    /** A waiting consumer gets a message when it is sent. The time is told, not judged. */
    static void latency(Env env) throws Exception {
        String topic = env.topic(1);
        Map<String, Long> arrived = new ConcurrentHashMap<>();
        DefaultMQPushConsumer c = env.push(env.group(), topic, "*", (MessageListenerConcurrently) (msgs, context) -> {
            msgs.forEach(m -> arrived.put(Sink.body(m), System.nanoTime()));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        env.awaitShared(topic, 1, c);
        List<Double> ms = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            Thread.sleep(40);
            String body = "l" + i;
            long t0 = System.nanoTime();
            env.send(new Message(topic, body.getBytes()));
            Env.until("message " + body, () -> arrived.containsKey(body));
            ms.add((arrived.get(body) - t0) / 1e6);
        }
        Collections.sort(ms);
        env.note(String.format("send to listener: median %.1f ms, max %.1f ms", ms.get(15), ms.get(29)));
    }

    /** A pull waits at the broker for 15 s at most; a message after an idle time longer than that still comes. */
    static void idlePoll(Env env) throws Exception {
        String topic = env.topic(2);
        Sink sink = new Sink();
        DefaultMQPushConsumer c = env.push(env.group(), topic, "*", sink);
        env.awaitShared(topic, 2, c);
        Thread.sleep(18000);
        env.sendMany(topic, "late", 4);
        sink.exactlyOnce("late", 4);
    }
}
