package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Push consumers whose queues the broker shares out, by pull and by POP: clients of 5.x only. */
final class PopChecks {
    private PopChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("server_rebalance", PopChecks::serverRebalance);
        all.put("pop_shared", PopChecks::shared);
        all.put("pop_tags", PopChecks::tags);
        all.put("pop_sql", PopChecks::sql);
        all.put("pop_retry", PopChecks::retry);
        all.put("pop_leaves", PopChecks::leaves);
        all.put("pop_idle", PopChecks::idle);
        all.put("pop_priority", PopChecks::priority);
    }

    /** With a broker of one's own, which is killed. */
    static void addAlone(Map<String, Check> all) {
        all.put("pop_over_restart", PopChecks::overRestart);
    }

    private static DefaultMQPushConsumer consumer(Env env, String group) throws Exception {
        DefaultMQPushConsumer c = env.newPush(group);
        Versions.setClientRebalance(c, false);
        return c;
    }

    /** A group that takes the topic's messages by POP: the group exists, and the broker knows the mode. */
    static String popGroup(Env env, String topic) throws Exception {
        String group = env.group();
        DefaultMQPushConsumer first = env.newPush(group);       // its heartbeat creates the group
        first.subscribe(env.topic(1), "*");
        first.registerMessageListener((MessageListenerConcurrently) (m, x) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        first.start();
        first.shutdown();
        Env.until("POP for " + group, () -> {
            try {
                Versions.setPop(env.producer(), topic, group);
                return true;
            } catch (org.apache.rocketmq.client.exception.MQClientException e) {
                return false;
            }
        });
        return group;
    }

    static DefaultMQPushConsumer pop(Env env, String group, String topic, String tags,
        MessageListenerConcurrently listener) throws Exception {
        DefaultMQPushConsumer c = consumer(env, group);
        env.start(c, topic, tags, listener);
        Env.until("queues of " + topic + " to pop", () -> !Versions.popQueues(c, topic).isEmpty());
        return c;
    }

    /** Without POP the broker's shares are queues to pull: each belongs to one consumer, also when one leaves. */
    static void serverRebalance(Env env) throws Exception {
        String topic = env.topic(6);
        String group = env.group();
        Sink sink = new Sink();
        DefaultMQPushConsumer a = consumer(env, group);
        env.start(a, topic, "*", sink);
        env.awaitShared(topic, 6, a);
        DefaultMQPushConsumer b = consumer(env, group);
        env.start(b, topic, "*", sink);
        env.awaitShared(topic, 6, a, b);
        env.sendMany(topic, "one", 60);
        sink.exactlyOnce("one", 60);
        env.awaitAllCommitted(group, topic);
        b.shutdown();
        env.awaitShared(topic, 6, a);
        sink.clear();
        env.sendMany(topic, "two", 60);
        sink.exactlyOnce("two", 60);
    }

    /** Two consumers pop the same queues: each message comes to one of them, both get some. */
    static void shared(Env env) throws Exception {
        String topic = env.topic(4);
        String group = popGroup(env, topic);
        Sink sink = new Sink();
        DefaultMQPushConsumer a = pop(env, group, topic, "*", slow(sink.as("a")));
        DefaultMQPushConsumer b = pop(env, group, topic, "*", slow(sink.as("b")));
        for (DefaultMQPushConsumer c : new DefaultMQPushConsumer[] {a, b}) {
            for (MessageQueue q : Versions.popQueues(c, topic)) {
                equal(q.getQueueId(), -1, "queue id of an assignment");
            }
        }
        env.sendMany(topic, "m", 400);
        sink.exactlyOnce("m", 400);
        require(sink.count("a") > 0 && sink.count("b") > 0, "both are to get some, a got " + sink.count("a")
            + ", b " + sink.count("b"));
        env.awaitAllCommitted(group, topic);
    }

    private static MessageListenerConcurrently slow(MessageListenerConcurrently listener) {
        return (msgs, context) -> {
            try {
                Thread.sleep(2);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return listener.consumeMessage(msgs, context);
        };
    }

    /** A message with a priority goes to the queue of that number, and the highest comes first. */
    static void priority(Env env) throws Exception {
        String topic = env.name("t");
        Versions.createTopic(env.producer(), env.topic(1), topic, 4, Map.of("+message.type", "PRIORITY"));
        env.awaitQueues(topic, 4);
        int[] priorities = {1, 9, 0, 2, 3, 1, 0, 2};
        for (int i = 0; i < priorities.length; i++) {
            Message m = new Message(topic, ("m" + i).getBytes());
            if (!Versions.setPriority(m, priorities[i])) {
                env.note("this client has no priorities");
                return;
            }
            SendResult r = env.send(m);
            equal(r.getMessageQueue().getQueueId(), Math.min(priorities[i], 3), "queue of priority " + priorities[i]);
        }
        for (int attempt = 0; attempt < 3; attempt++) {
            if (highestFirst(env, topic, priorities.length)) {
                return;
            }
        }
        throw new Failure("no pop brought messages of all queues at once");
    }

    /**
     * A new group takes what is there by a consumer of one thread. The order is promised for the messages of one pop,
     * which is one when all of them are in their queues before: RocketMQ answers a send before that. False: they came by
     * several.
     */
    private static boolean highestFirst(Env env, String topic, int messages) throws Exception {
        String group = popGroup(env, topic);
        PopApi api = new PopApi(env, topic, group);
        Env.until(messages + " messages in their queues", () -> api.peek(-1, 32).bodies().size() == messages);
        Sink sink = new Sink();
        DefaultMQPushConsumer c = consumer(env, group);
        c.setConsumeThreadMin(1);
        c.setConsumeThreadMax(1);
        env.start(c, topic, "*", sink);
        sink.exactlyOnce("m", messages);
        c.shutdown();
        Map<String, List<Integer>> pops = new HashMap<>();
        for (MessageExt m : sink.messages()) {
            String handle = m.getProperty("POP_CK");
            require(handle != null, Sink.body(m) + " was not popped");
            pops.computeIfAbsent(handle.split(" ")[1], k -> new ArrayList<>()).add(m.getQueueId());
        }
        boolean all = false;
        for (List<Integer> queues : pops.values()) {
            List<Integer> wanted = new ArrayList<>(queues);
            wanted.sort(Collections.reverseOrder());
            equal(queues, wanted, "queues in the order in which the messages of a pop came");
            all |= new HashSet<>(queues).size() == 4;
        }
        return all;
    }

    static void tags(Env env) throws Exception {
        String topic = env.topic(2);
        String group = popGroup(env, topic);
        Sink sink = new Sink();
        pop(env, group, topic, "TagA || TagB", sink);
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 60; i++) {
            String tag = new String[] {"TagA", "TagB", "TagC"}[i % 3];
            env.send(new Message(topic, tag, (tag + i).getBytes()));
            if (i % 3 != 2) {
                want.add(tag + i);
            }
        }
        sink.exactlyOnce(want);
    }

    /** By an expression: also what comes while the request waits, after much that does not match. */
    static void sql(Env env) throws Exception {
        String topic = env.topic(2);
        String group = popGroup(env, topic);
        Sink sink = new Sink();
        DefaultMQPushConsumer c = consumer(env, group);
        c.subscribe(topic, MessageSelector.bySql("n > 10 AND n < 20"));
        c.registerMessageListener(sink);
        c.start();
        Env.until("queues of " + topic + " to pop", () -> !Versions.popQueues(c, topic).isEmpty());
        Thread.sleep(2000);
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 60; i++) {
            Message m = new Message(topic, ("n" + i).getBytes());
            m.putUserProperty("n", String.valueOf(i));
            env.send(m);
            if (i > 10 && i < 20) {
                want.add("n" + i);
            }
        }
        sink.exactlyOnce(want);
    }

    /**
     * The broker is killed after half of the messages were acknowledged and the others given back: those come again,
     * once, and of the acknowledged ones none.
     */
    static void overRestart(Env env) throws Exception {
        String topic = env.topic(2);
        String group = popGroup(env, topic);
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        pop(env, group, topic, "*", (msgs, context) -> {
            got.addAll(msgs.stream().map(Sink::body).collect(java.util.stream.Collectors.toList()));
            boolean later = msgs.stream().anyMatch(m -> m.getReconsumeTimes() == 0 && number(Sink.body(m)) % 2 == 1);
            return later ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        env.sendMany(topic, "m", 40);
        Env.until("all 40", () -> new HashSet<>(got).size() == 40);
        Thread.sleep(1500);             // the answers to them are there
        env.restartBroker();
        Env.until("the 20 that were given back come again", 150, () -> got.size() >= 60);
        Thread.sleep(15000);
        for (int i = 0; i < 40; i++) {
            equal(Collections.frequency(got, "m" + i), 1 + i % 2, "deliveries of m" + i);
        }
    }

    private static int number(String body) {
        return Integer.parseInt(body.substring(1));
    }

    /** RECONSUME_LATER brings the message back after 10 s, counted, with all that it had. */
    static void retry(Env env) throws Exception {
        String topic = env.topic(1);
        String group = popGroup(env, topic);
        Again again = new Again();
        pop(env, group, topic, "*", again);
        again.send(env, topic);
        require(again.await(topic).getProperty("1ST_POP_TIME") != null, "the time of the first pop");
    }

    /** A consumer that goes without an acknowledgement: another gets its messages when their time is up. */
    static void leaves(Env env) throws Exception {
        String topic = env.topic(2);
        String group = popGroup(env, topic);
        CountDownLatch stuck = new CountDownLatch(1);
        List<String> taken = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer first = consumer(env, group);
        Versions.setPopInvisibleTime(first, 10000);
        env.start(first, topic, "*", (MessageListenerConcurrently) (msgs, context) -> {
            msgs.forEach(m -> taken.add(Sink.body(m)));
            try {
                stuck.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return null;
        });
        Env.until("queues to pop", () -> !Versions.popQueues(first, topic).isEmpty());
        env.sendMany(topic, "m", 8);
        Env.until("some are taken", () -> !taken.isEmpty());
        first.shutdown();
        Sink sink = new Sink();
        pop(env, group, topic, "*", sink);
        sink.exactlyOnce("m", 8);
        stuck.countDown();
    }

    /** A POP request waits at the broker; a message after an idle time longer than that still comes. */
    static void idle(Env env) throws Exception {
        String topic = env.topic(2);
        String group = popGroup(env, topic);
        Sink sink = new Sink();
        pop(env, group, topic, "*", sink);
        Thread.sleep(25000);
        env.sendMany(topic, "late", 4);
        sink.exactlyOnce("late", 4);
    }
}
