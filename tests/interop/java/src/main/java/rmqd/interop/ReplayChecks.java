package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Where a group begins and is set to, messages that are looked up, and what a broker counts. */
final class ReplayChecks {
    private static final int QUEUES = 2;

    private ReplayChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("consume_from", ReplayChecks::consumeFrom);
        all.put("reset_online", ReplayChecks::resetOnline);
        all.put("reset_offline", ReplayChecks::resetOffline);
        all.put("reset_skip", ReplayChecks::skip);
        all.put("clone_offsets", ReplayChecks::cloneOffsets);
        all.put("query_key", ReplayChecks::queryKey);
        all.put("statistics", ReplayChecks::statistics);
        all.put("consumer_status", ReplayChecks::consumerStatus);
    }

    private static MQClientInstance client(Env env) throws Exception {
        return env.producer().getDefaultMQProducerImpl().getMqClientFactory();
    }

    private static MQClientAPIImpl api(Env env) throws Exception {
        return client(env).getMQClientAPIImpl();
    }

    /** The broker of the topic, as tools find it. */
    private static String broker(Env env, String topic) throws Exception {
        client(env).updateTopicRouteInfoFromNameServer(topic);
        return client(env).findBrokerAddressInPublish(env.queues(topic).get(0).getBrokerName());
    }

    static void reset(Env env, String topic, String group, long ms) throws Exception {
        Map<MessageQueue, Long> to = api(env).invokeBrokerToResetOffset(broker(env, topic), topic, group, ms, true,
            Env.API_TIMEOUT_MS);
        equal(to.size(), QUEUES, "queues that were reset");
    }

    private static Set<String> numbered(String prefix, int n) {
        Set<String> all = new HashSet<>();
        for (int i = 0; i < n; i++) {
            all.add(prefix + i);
        }
        return all;
    }

    /** 20 messages "old", then 20 "new"; a time in between comes out. */
    static long sendOldAndNew(Env env, String topic) throws Exception {
        env.sendMany(topic, "old", 20);
        Thread.sleep(700);
        long between = System.currentTimeMillis();
        Thread.sleep(700);
        env.sendMany(topic, "new", 20);
        return between;
    }

    private static DefaultMQPushConsumer from(Env env, String topic, ConsumeFromWhere where, boolean broadcast, Sink sink)
        throws Exception {
        DefaultMQPushConsumer c = env.newPush(env.group());
        if (broadcast) {
            Versions.setBroadcasting(c);
        }
        c.setConsumeFromWhere(where);
        env.start(c, topic, "*", sink);
        env.awaitShared(topic, QUEUES, c);
        return c;
    }

    /**
     * First, last, and a time, which is in whole seconds. A cluster group that has no offset begins at the beginning of
     * a young topic in any case: the broker says so.
     */
    static void consumeFrom(Env env) throws Exception {
        String topic = env.topic(QUEUES);
        env.sendMany(topic, "old", 20);
        Thread.sleep(1500);
        String second = new SimpleDateFormat("yyyyMMddHHmmss").format(new Date());
        Thread.sleep(1500);
        env.sendMany(topic, "new", 20);
        Sink first = new Sink();
        Sink last = new Sink();
        Sink time = new Sink();
        Sink cluster = new Sink();
        from(env, topic, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, true, first);
        from(env, topic, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, true, last);
        DefaultMQPushConsumer c = env.newPush(env.group());
        Versions.setBroadcasting(c);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP);
        c.setConsumeTimestamp(second);
        env.start(c, topic, "*", time);
        env.awaitShared(topic, QUEUES, c);
        from(env, topic, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, false, cluster);
        env.sendMany(topic, "later", 20);
        Set<String> want = numbered("later", 20);
        last.exactlyOnce(want);
        want.addAll(numbered("new", 20));
        time.exactlyOnce(want);
        want.addAll(numbered("old", 20));
        first.exactlyOnce(want);
        cluster.exactlyOnce(want);
    }

    /** A consumer at work goes back to a time in milliseconds, and gets what came since once more, once. */
    static void resetOnline(Env env) throws Exception {
        String topic = env.topic(QUEUES);
        String group = env.group();
        Sink sink = new Sink();
        DefaultMQPushConsumer c = env.push(group, topic, "*", sink);
        env.awaitShared(topic, QUEUES, c);
        long between = sendOldAndNew(env, topic);
        Env.until("40 messages", () -> sink.messages().size() == 40);
        env.awaitAllCommitted(group, topic);
        sink.clear();
        reset(env, topic, group, between);
        sink.exactlyOnce("new", 20);
        env.awaitAllCommitted(group, topic);
    }

    /** Nobody of the group is there; whoever comes begins where it was set to. */
    static void resetOffline(Env env) throws Exception {
        String topic = env.topic(QUEUES);
        String group = env.group();
        Sink sink = new Sink();
        DefaultMQPushConsumer c = env.push(group, topic, "*", sink);
        env.awaitShared(topic, QUEUES, c);
        long between = sendOldAndNew(env, topic);
        Env.until("40 messages", () -> sink.messages().size() == 40);
        env.awaitAllCommitted(group, topic);
        c.shutdown();
        reset(env, topic, group, between);
        sink.clear();
        env.push(group, topic, "*", sink);
        sink.exactlyOnce("new", 20);
    }

    /** To the end: what has piled up is skipped. */
    static void skip(Env env) throws Exception {
        String topic = env.topic(QUEUES);
        String group = env.group();
        Sink sink = new Sink();
        DefaultMQPushConsumer c = env.push(group, topic, "*", sink);
        env.awaitShared(topic, QUEUES, c);
        env.sendMany(topic, "first", 20);
        sink.exactlyOnce("first", 20);
        env.awaitAllCommitted(group, topic);
        c.shutdown();
        env.sendMany(topic, "skipped", 20);
        reset(env, topic, group, -1);
        sink.clear();
        env.push(group, topic, "*", sink);
        env.sendMany(topic, "then", 20);
        sink.exactlyOnce("then", 20);
    }

    /** A group gets another one's offsets, and goes on from there. */
    static void cloneOffsets(Env env) throws Exception {
        String topic = env.topic(QUEUES);
        String source = env.group();
        Sink sink = new Sink();
        DefaultMQPushConsumer c = env.push(source, topic, "*", sink);
        env.awaitShared(topic, QUEUES, c);
        env.sendMany(topic, "done", 20);
        sink.exactlyOnce("done", 20);
        env.awaitAllCommitted(source, topic);
        c.shutdown();
        env.sendMany(topic, "left", 20);
        String target = env.group();
        api(env).cloneGroupOffset(broker(env, topic), source, target, topic, false, Env.API_TIMEOUT_MS);
        for (MessageQueue mq : env.queues(topic)) {
            equal(env.committed(target, mq), env.committed(source, mq), "offset of " + mq);
        }
        Sink other = new Sink();
        env.push(target, topic, "*", other);
        other.exactlyOnce("left", 20);
    }

    /** By key, by a unique key, and by an id; all messages of a key, none of another. */
    static void queryKey(Env env) throws Exception {
        String topic = env.topic(QUEUES);
        long began = System.currentTimeMillis() - 5000;
        for (int i = 0; i < 12; i++) {
            env.send(new Message(topic, "tag", i % 3 == 0 ? "wanted other" : "other", ("k" + i).getBytes()));
        }
        String id = env.send(new Message(topic, "tag", "alone", "x".getBytes())).getMsgId();
        String offsetId = env.send(new Message(topic, "y".getBytes())).getOffsetMsgId();
        long until = System.currentTimeMillis() + 5000;
        Set<String> got = new HashSet<>();
        Env.until("4 messages of the key", () -> {
            got.clear();
            try {
                for (MessageExt m : env.producer().queryMessage(topic, "wanted", 32, began, until).getMessageList()) {
                    got.add(Sink.body(m));
                }
            } catch (MQClientException e) {
                return false;           // nothing yet
            }
            return got.size() >= 4;
        });
        equal(got, Set.of("k0", "k3", "k6", "k9"), "messages of the key");
        equal(Sink.body(env.producer().viewMessage(topic, id)), "x", "message of the unique key");
        equal(Sink.body(env.producer().viewMessage(topic, offsetId)), "y", "message of the id");
        try {
            env.producer().queryMessage(topic, "nobody's", 32, began, until);
        } catch (MQClientException e) {
            return;
        }
        throw new Failure("messages were found of a key that none has");
    }

    /** Consume and topic statistics, of a group and of all groups of a broker, and the broker's counters. */
    static void statistics(Env env) throws Exception {
        String topic = env.topic(QUEUES);
        String group = env.group();
        String addr = broker(env, topic);
        Sink sink = new Sink();
        DefaultMQPushConsumer c = env.push(group, topic, "*", sink);
        env.awaitShared(topic, QUEUES, c);
        long began = System.currentTimeMillis();
        env.sendMany(topic, "s", 20);
        sink.exactlyOnce("s", 20);
        env.awaitAllCommitted(group, topic);
        c.shutdown();
        env.sendMany(topic, "behind", 6);
        var topics = api(env).getTopicStatsInfo(addr, topic, Env.API_TIMEOUT_MS);
        equal(topics.getOffsetTable().size(), QUEUES, "queues of the topic's statistics");
        for (MessageQueue mq : env.queues(topic)) {
            equal(topics.getOffsetTable().get(mq).getMinOffset(), 0L, "min offset");
            equal(topics.getOffsetTable().get(mq).getMaxOffset(), 13L, "max offset");
            long updated = topics.getOffsetTable().get(mq).getLastUpdateTimestamp();
            require(updated >= began && updated <= System.currentTimeMillis(), "time of the last message: " + updated);
        }
        var stats = api(env).getConsumeStats(addr, group, topic, Env.API_TIMEOUT_MS);
        equal(stats.computeTotalDiff(), 6L, "messages that the group is behind");
        for (MessageQueue mq : env.queues(topic)) {
            equal(stats.getOffsetTable().get(mq).getBrokerOffset(), 13L, "broker offset");
            equal(stats.getOffsetTable().get(mq).getConsumerOffset(), 10L, "consumer offset");
            require(stats.getOffsetTable().get(mq).getLastTimestamp() >= began, "time of the last message consumed");
        }
        var all = api(env).fetchConsumeStatsInBroker(addr, false, Env.API_TIMEOUT_MS);
        equal(all.getBrokerAddr(), addr, "address of the broker");
        require(all.getTotalDiff() >= 6, "messages that all groups are behind: " + all.getTotalDiff());
        long behind = -1;
        for (var groups : all.getConsumeStatsList()) {
            if (groups.containsKey(group)) {
                behind = groups.get(group).stream().filter(s -> s.getOffsetTable().containsKey(firstOf(env, topic)))
                    .mapToLong(s -> s.computeTotalDiff()).sum();
            }
        }
        equal(behind, 6L, "messages that the group is behind, among all groups");
        var counted = api(env).viewBrokerStatsData(addr, "TOPIC_PUT_NUMS", topic, Env.API_TIMEOUT_MS);
        require(counted.getStatsMinute().getSum() >= 0, "messages of the last minute");
        Map<Integer, Long> least = api(env).queryCorrectionOffset(addr, topic, group, new HashSet<>(), Env.API_TIMEOUT_MS);
        equal(least, Map.of(0, 10L, 1, 10L), "the least offset of all groups");
    }

    private static MessageQueue firstOf(Env env, String topic) {
        try {
            return env.queues(topic).get(0);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** The broker asks the members where they are. */
    static void consumerStatus(Env env) throws Exception {
        String topic = env.topic(QUEUES);
        String group = env.group();
        Sink sink = new Sink();
        DefaultMQPushConsumer a = env.push(group, topic, "*", sink);
        DefaultMQPushConsumer b = env.push(group, topic, "*", sink);
        env.awaitShared(topic, QUEUES, a, b);
        env.sendMany(topic, "c", 20);
        sink.exactlyOnce("c", 20);
        String addr = broker(env, topic);
        Env.until("both members and both offsets", () -> {
            Map<String, Map<MessageQueue, Long>> all = api(env).invokeBrokerToGetConsumerStatus(addr, topic, group, null,
                Env.API_TIMEOUT_MS);
            Map<MessageQueue, Long> together = new java.util.HashMap<>();
            all.values().forEach(together::putAll);
            return all.size() == 2 && together.size() == QUEUES && together.values().stream().allMatch(n -> n == 10);
        });
        String one = env.members(topic, group).get(0);
        Map<String, Map<MessageQueue, Long>> only = api(env).invokeBrokerToGetConsumerStatus(addr, topic, group, one,
            Env.API_TIMEOUT_MS);
        equal(only.keySet(), Set.of(one), "the one that was asked for");
        try {
            api(env).invokeBrokerToGetConsumerStatus(addr, topic, env.group(), null, Env.API_TIMEOUT_MS);
        } catch (MQClientException e) {
            return;                     // the reference says it by a NullPointerException
        }
        throw new Failure("a group without members has a status");
    }
}
