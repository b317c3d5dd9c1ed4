package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** SQL92 filters. */
final class FilterChecks {
    private static final int SUBSCRIPTION_PARSE_FAILED = 23;

    private FilterChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("sql_push", FilterChecks::push);
        all.put("sql_refused", FilterChecks::refused);
        all.put("sql_pull", FilterChecks::pull);
        all.put("sql_lite_pull", FilterChecks::litePull);
        all.put("sql_waiting", FilterChecks::waiting);
        all.put("sql_resubscribe", FilterChecks::resubscribe);
        all.put("sql_retry", FilterChecks::retry);
    }

    /** Message i has the properties n = i, even = true or false, name = name-i; every third one has none of them. */
    private static void send(Env env, String topic, String prefix, int count) throws Exception {
        List<MessageQueue> mqs = env.queues(topic);
        for (int i = 0; i < count; i++) {
            Message m = new Message(topic, i % 4 == 0 ? "TagA" : "TagB", (prefix + i).getBytes());
            if (i % 3 != 0) {
                m.putUserProperty("n", String.valueOf(i));
                m.putUserProperty("even", String.valueOf(i % 2 == 0));
                m.putUserProperty("name", "name-" + i);
            }
            env.producer().send(m, mqs.get(i % mqs.size()));
        }
    }

    private static Set<String> wanted(String prefix, int count, java.util.function.IntPredicate p) {
        Set<String> want = new HashSet<>();
        for (int i = 0; i < count; i++) {
            if (p.test(i)) {
                want.add(prefix + i);
            }
        }
        return want;
    }

    private static DefaultMQPushConsumer start(Env env, String group, String topic, String sql,
        MessageListenerConcurrently listener) throws Exception {
        DefaultMQPushConsumer c = env.newPush(group);
        c.subscribe(topic, MessageSelector.bySql(sql));
        c.registerMessageListener(listener);
        c.start();
        return c;
    }

    /** Several groups, each with its expression, each gets what matches: sent before it started, and after. */
    static void push(Env env) throws Exception {
        String topic = env.topic(3);
        send(env, topic, "p", 60);
        Sink ranges = new Sink();
        Sink names = new Sink();
        Sink nulls = new Sink();
        Sink tags = new Sink();
        start(env, env.group(), topic, "n BETWEEN 10 AND 49 AND even = TRUE", ranges);
        start(env, env.group(), topic, "name IN ('name-1', 'name-2', 'name-3') OR name ENDSWITH '7'", names);
        start(env, env.group(), topic, "n IS NULL", nulls);
        start(env, env.group(), topic, "TAGS = 'TagA' AND NOT (n < 20)", tags);
        Env.until("the messages of the first round", () -> ranges.messages().size() >= 13);
        send(env, topic, "q", 60);
        Set<String> want = wanted("p", 60, i -> i % 3 != 0 && i >= 10 && i <= 49 && i % 2 == 0);
        want.addAll(wanted("q", 60, i -> i % 3 != 0 && i >= 10 && i <= 49 && i % 2 == 0));
        ranges.exactlyOnce(want);
        want = wanted("p", 60, i -> i % 3 != 0 && (i == 1 || i == 2 || i % 10 == 7));
        want.addAll(wanted("q", 60, i -> i % 3 != 0 && (i == 1 || i == 2 || i % 10 == 7)));
        names.exactlyOnce(want);
        want = wanted("p", 60, i -> i % 3 == 0);
        want.addAll(wanted("q", 60, i -> i % 3 == 0));
        nulls.exactlyOnce(want);
        want = wanted("p", 60, i -> i % 4 == 0 && i % 3 != 0 && i >= 20);
        want.addAll(wanted("q", 60, i -> i % 4 == 0 && i % 3 != 0 && i >= 20));
        tags.exactlyOnce(want);
    }

    /** A consumer with an expression that is none does not start, and learns why. */
    static void refused(Env env) throws Exception {
        String topic = env.topic(1);
        for (String sql : new String[] {"n > ", "a BETWEEN 5 AND 1", "a = 5 AND", "5", "a IN (5)"}) {
            try {
                start(env, env.group(), topic, sql, new Sink());
            } catch (MQClientException e) {
                equal(e.getResponseCode(), SUBSCRIPTION_PARSE_FAILED, "code for " + sql);
                env.note(sql + ": " + e.getErrorMessage());
                continue;
            }
            throw new Failure("a consumer started with the expression " + sql);
        }
    }

    /** A pull that carries its expression; the next offset passes what does not match. */
    static void pull(Env env) throws Exception {
        String topic = env.topic(1);
        send(env, topic, "p", 30);
        DefaultMQPullConsumer c = PullChecks.pullConsumer(env, env.group());
        MessageQueue mq = c.fetchSubscribeMessageQueues(topic).iterator().next();
        // The client asks for filters only of brokers whose version it has seen in the answer to a heartbeat,
        // and sends that only to brokers that it has pulled from.
        c.pull(mq, "*", 0, 1);
        Env.until("the client knows the broker's version", () -> {
            c.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory().sendHeartbeatToAllBrokerWithLock();
            try {
                c.pull(mq, MessageSelector.bySql("TRUE"), 0, 1);
                return true;
            } catch (MQClientException e) {
                require(String.valueOf(e.getErrorMessage()).contains("does not upgrade"), e.toString());
                return false;
            }
        });
        PullResult r = c.pull(mq, MessageSelector.bySql("n > 1000"), 0, 32);
        equal(r.getPullStatus(), PullStatus.NO_MATCHED_MSG, "pull without a match");
        equal(r.getNextBeginOffset(), 30L, "the next offset when nothing matched");
        Set<String> got = new HashSet<>();
        for (long offset = 0; offset < 30; offset = r.getNextBeginOffset()) {
            r = c.pull(mq, MessageSelector.bySql("n >= 10 AND n <> 11"), offset, 4);
            if (r.getPullStatus() == PullStatus.FOUND) {
                for (MessageExt m : r.getMsgFoundList()) {
                    require(got.add(Sink.body(m)), "twice: " + Sink.body(m));
                }
            }
            require(r.getNextBeginOffset() > offset, "a pull that does not get on");
        }
        equal(got, wanted("p", 30, i -> i % 3 != 0 && i >= 10 && i != 11), "what matches");
    }

    static void litePull(Env env) throws Exception {
        String topic = env.topic(2);
        send(env, topic, "l", 40);
        DefaultLitePullConsumer c = new DefaultLitePullConsumer(env.group());
        c.setNamesrvAddr(env.namesrv);
        c.setInstanceName(env.name("i"));
        c.setMqClientApiTimeout(Env.API_TIMEOUT_MS);
        c.setConsumeFromWhere(org.apache.rocketmq.common.consumer.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        env.onClose(c::shutdown);
        c.subscribe(topic, MessageSelector.bySql("name STARTSWITH 'name-2'"));
        c.start();
        Sink sink = new Sink();
        Set<String> want = wanted("l", 40, i -> i % 3 != 0 && (i == 2 || i / 10 == 2));
        Env.until("the messages that match", () -> {
            sink.add("", c.poll(500));
            return sink.messages().size() >= want.size();
        });
        sink.add("", c.poll(1000));
        sink.exactlyOnce(want);
    }

    /** A consumer at the end of its queue gets a message that matches when it is sent, after many that do not. */
    static void waiting(Env env) throws Exception {
        String topic = env.topic(1);
        env.sendMany(topic, "none", 1);
        Sink sink = new Sink();
        start(env, env.group(), topic, "n = 7", sink);
        Thread.sleep(3000);
        env.sendMany(topic, "none", 50);
        Message m = new Message(topic, "seven".getBytes());
        m.putUserProperty("n", "7");
        long began = System.nanoTime();
        env.producer().send(m);
        Env.until("the message that matches", () -> sink.messages().size() > 0);
        env.note((System.nanoTime() - began) / 1000000 + " ms from send to listener");
        Set<String> want = new HashSet<>();
        want.add("seven");
        sink.exactlyOnce(want);
    }

    /**
     * A running consumer subscribes with another expression, which counts from then on. It may get what the first one
     * did not want, as long as its pull was waiting behind that.
     */
    static void resubscribe(Env env) throws Exception {
        String topic = env.topic(1);
        Sink sink = new Sink();
        DefaultMQPushConsumer c = start(env, env.group(), topic, "n < 10", sink);
        send(env, topic, "a", 20);
        sink.exactlyOnce(wanted("a", 20, i -> i % 3 != 0 && i < 10));
        c.subscribe(topic, MessageSelector.bySql("n >= 10"));
        Thread.sleep(2000);
        send(env, topic, "b", 20);
        Set<String> want = wanted("b", 20, i -> i % 3 != 0 && i >= 10);
        Env.until("what the new expression wants", () -> bodies(sink).containsAll(want));
        Thread.sleep(1000);
        Set<String> got = bodies(sink);
        got.removeAll(wanted("a", 20, i -> i % 3 != 0));
        equal(got, want, "messages of the new expression");
    }

    private static Set<String> bodies(Sink sink) {
        Set<String> all = new HashSet<>();
        for (MessageExt m : sink.messages()) {
            all.add(Sink.body(m));
        }
        return all;
    }

    /** What a filtered consumer gives back comes again. */
    static void retry(Env env) throws Exception {
        String topic = env.topic(1);
        Map<String, Integer> times = new ConcurrentHashMap<>();
        start(env, env.group(), topic, "n > 15", (msgs, context) -> {
            context.setDelayLevelWhenNextConsume(1);
            boolean again = false;
            for (MessageExt m : msgs) {
                again |= times.merge(Sink.body(m), 1, Integer::sum) == 1;
            }
            return again ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        send(env, topic, "r", 20);
        Set<String> want = wanted("r", 20, i -> i % 3 != 0 && i > 15);
        Env.until("each message twice", () -> times.keySet().equals(want)
            && times.values().stream().allMatch(n -> n >= 2));
    }
}
