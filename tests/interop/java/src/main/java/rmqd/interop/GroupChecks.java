package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;

/** Several consumers: sharing, joining, leaving. */
final class GroupChecks {
    private GroupChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("push_shared", GroupChecks::shared);
        all.put("rebalance", GroupChecks::rebalance);
        all.put("broadcast", GroupChecks::broadcast);
        all.put("unregister", GroupChecks::unregister);
    }

    /** Two consumers of a group share the queues, each message comes once. */
    static void shared(Env env) throws Exception {
        String topic = env.topic(8);
        String group = env.group();
        Sink sink = new Sink();
        DefaultMQPushConsumer a = env.push(group, topic, "*", sink.as("a"));
        DefaultMQPushConsumer b = env.push(group, topic, "*", sink.as("b"));
        env.awaitShared(topic, 8, a, b);
        env.sendMany(topic, "m", 400);
        sink.exactlyOnce("m", 400);
        equal(sink.count("a"), 200, "messages of the first of two consumers with 4 of 8 queues each");
        equal(sink.count("b"), 200, "messages of the second");
        equal(env.members(topic, group).size(), 2, "members of the group");
    }

    /** A third consumer joins and leaves: the queues are shared anew at once, nothing is lost or doubled. */
    static void rebalance(Env env) throws Exception {
        String topic = env.topic(8);
        String group = env.group();
        Sink sink = new Sink();
        DefaultMQPushConsumer a = env.push(group, topic, "*", sink.as("a"));
        DefaultMQPushConsumer b = env.push(group, topic, "*", sink.as("b"));
        env.awaitShared(topic, 8, a, b);
        env.sendMany(topic, "two", 160);
        sink.exactlyOnce("two", 160);
        env.awaitAllCommitted(group, topic);

        sink.clear();
        long t0 = System.nanoTime();
        DefaultMQPushConsumer c = env.push(group, topic, "*", sink.as("c"));
        env.awaitShared(topic, 8, a, b, c);
        long joined = System.nanoTime();
        env.sendMany(topic, "three", 160);
        sink.exactlyOnce("three", 160);
        for (String who : new String[] {"a", "b", "c"}) {
            require(sink.count(who) > 0, "consumer " + who + " got nothing while there were three");
        }
        env.awaitAllCommitted(group, topic);

        sink.clear();
        long t1 = System.nanoTime();
        c.shutdown();
        env.awaitShared(topic, 8, a, b);
        long left = System.nanoTime();
        env.sendMany(topic, "again", 160);
        sink.exactlyOnce("again", 160);
        equal(sink.count("c"), 0, "messages of the consumer that left");
        env.note(String.format("shared anew %d ms after a join, %d ms after a leave", (joined - t0) / 1000000,
            (left - t1) / 1000000));
    }

    /** In broadcast each consumer gets each message. */
    static void broadcast(Env env) throws Exception {
        String topic = env.topic(4);
        String group = env.group();
        Sink[] sinks = {new Sink(), new Sink(), new Sink()};
        for (Sink s : sinks) {
            DefaultMQPushConsumer c = env.newPush(group);
            Versions.setBroadcasting(c);
            env.start(c, topic, "*", s);
            env.awaitShared(topic, 4, c);
        }
        env.sendMany(topic, "b", 80);
        for (Sink s : sinks) {
            s.exactlyOnce("b", 80);
        }
    }

    /** A consumer that shuts down is no member any more, although the connection it shared with another stays. */
    static void unregister(Env env) throws Exception {
        String topic = env.topic(2);
        String instance = env.name("i");
        String leaving = env.group();
        String staying = env.group();
        DefaultMQPushConsumer a = env.newPush(leaving);
        a.setInstanceName(instance);
        env.start(a, topic, "*", new Sink());
        Sink sink = new Sink();
        DefaultMQPushConsumer b = env.newPush(staying);
        b.setInstanceName(instance);
        env.start(b, topic, "*", sink);
        Env.until("both groups have a member",
            () -> env.members(topic, leaving).size() == 1 && env.members(topic, staying).size() == 1);
        equal(env.members(topic, leaving), env.members(topic, staying), "client id of both");
        a.shutdown();
        Env.until("the group of the consumer that shut down is empty", 15, () -> {
            try {
                return env.members(topic, leaving).isEmpty();
            } catch (Exception e) {
                return true;
            }
        });
        equal(env.members(topic, staying).size(), 1, "members of the other group");
        env.sendMany(topic, "u", 10);
        sink.exactlyOnce("u", 10);
    }
}
