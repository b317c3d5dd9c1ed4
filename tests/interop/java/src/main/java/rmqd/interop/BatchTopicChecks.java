package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Topics with queue.type=BatchCQ: what a 5.x producer sends as a batch is one record of all its messages, which takes
 * as many queue offsets; consumers of 5.x take it apart.
 */
final class BatchTopicChecks {
    private BatchTopicChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("batch_topic", BatchTopicChecks::sendAndConsume);
        all.put("batch_topic_pull", BatchTopicChecks::pull);
        all.put("batch_topic_tags", BatchTopicChecks::tags);
        all.put("batch_topic_times", BatchTopicChecks::times);
        all.put("batch_topic_retry", BatchTopicChecks::retry);
        all.put("batch_topic_refused", BatchTopicChecks::refused);
        all.put("batch_topic_pop", BatchTopicChecks::pop);
    }

    static void addAlone(Map<String, Check> all) {
        all.put("batch_topic_over_restart", BatchTopicChecks::overRestart);
    }

    /** Null: a client that cannot make one. */
    private static MessageQueue queue(Env env) throws Exception {
        String topic = env.name("t");
        if (!Versions.createTopic(env.producer(), env.topic(1), topic, 1, Map.of("+queue.type", "BatchCQ"))) {
            env.note("this client cannot give a topic attributes");
            return null;
        }
        return env.awaitQueues(topic, 1).get(0);
    }

    private static SendResult batch(Env env, String topic, String prefix, int first, int count, String tag)
        throws Exception {
        List<Message> messages = new ArrayList<>();
        for (int i = first; i < first + count; i++) {
            messages.add(new Message(topic, tag, prefix + i + "key", (prefix + i).getBytes()));
        }
        SendResult r = env.producer().send(messages);
        equal(r.getSendStatus(), SendStatus.SEND_OK, "send status");
        return r;
    }

    private static SendResult single(Env env, String topic, String prefix, int i, String tag) throws Exception {
        return env.send(new Message(topic, tag, prefix + i + "key", (prefix + i).getBytes()));
    }

    /** 1 message, then 5, 1, 40: 47 in all, whose bodies are prefix and number, in the order of the offsets. */
    private static void some(Env env, String topic, String prefix) throws Exception {
        long at = env.producer().maxOffset(env.queues(topic).get(0));
        equal(single(env, topic, prefix, 0, "a").getQueueOffset(), at, "offset of a single message");
        SendResult five = batch(env, topic, prefix, 1, 5, "a");
        equal(five.getQueueOffset(), at + 1, "offset of a batch");
        require(!five.getMsgId().contains(","), "a batch has one id: " + five.getMsgId());
        require(!five.getOffsetMsgId().contains(","), "a batch is one record: " + five.getOffsetMsgId());
        equal(single(env, topic, prefix, 6, "a").getQueueOffset(), at + 6, "offset behind a batch");
        equal(batch(env, topic, prefix, 7, 40, "a").getQueueOffset(), at + 7, "offset of a larger batch");
    }

    private static void expectOffsets(List<MessageExt> messages, String prefix, long first) throws Failure {
        for (MessageExt m : messages) {
            int number = Integer.parseInt(Sink.body(m).substring(prefix.length()));
            equal(m.getQueueOffset(), first + number, "queue offset of " + Sink.body(m));
            equal(m.getKeys(), prefix + number + "key", "keys of " + Sink.body(m));
        }
    }

    /** Every message comes once, as itself, at its own offset, to those who are there and who come later. */
    static void sendAndConsume(Env env) throws Exception {
        MessageQueue mq = queue(env);
        if (mq == null) {
            return;
        }
        Sink waiting = new Sink();
        String group = env.group();
        DefaultMQPushConsumer c = env.push(group, mq.getTopic(), "*", waiting);
        env.awaitShared(mq.getTopic(), 1, c);
        Thread.sleep(1000);         // it waits at the broker
        some(env, mq.getTopic(), "b");
        expectOffsets(waiting.exactlyOnce("b", 47), "b", 0);
        equal(env.producer().maxOffset(mq), 47L, "max offset");
        equal(env.producer().minOffset(mq), 0L, "min offset");
        env.awaitAllCommitted(group, mq.getTopic());
        Sink late = new Sink();
        env.push(env.group(), mq.getTopic(), "*", late);
        expectOffsets(late.exactlyOnce("b", 47), "b", 0);
    }

    private static TreeSet<Long> offsets(PullResult r) {
        TreeSet<Long> all = new TreeSet<>();
        for (MessageExt m : r.getMsgFoundList()) {
            all.add(m.getQueueOffset());
        }
        return all;
    }

    /** A pull answers whole records, also from within one; batches count by their messages. */
    static void pull(Env env) throws Exception {
        MessageQueue mq = queue(env);
        if (mq == null) {
            return;
        }
        some(env, mq.getTopic(), "p");
        DefaultMQPullConsumer c = PullChecks.pullConsumer(env, env.group());
        PullResult r = c.pull(mq, "*", 0, 32);
        equal(r.getPullStatus(), PullStatus.FOUND, "status");
        equal(r.getNextBeginOffset(), 7L, "the batch of 40 has no room beside the others");
        equal(r.getMsgFoundList().size(), 7, "messages");
        equal(r.getMaxOffset(), 47L, "max offset");
        r = c.pull(mq, "*", 0, 4);
        equal(r.getNextBeginOffset(), 1L, "5 do not fit into 4");
        r = c.pull(mq, "*", 3, 1);
        equal(r.getNextBeginOffset(), 6L, "behind the batch that has the offset");
        equal(offsets(r).first(), 1L, "the whole batch comes");
        equal(offsets(r).last(), 5L, "the whole batch comes");
        r = c.pull(mq, "*", 46, 32);
        equal(r.getNextBeginOffset(), 47L, "from the last of a batch");
        equal(offsets(r).first(), 7L, "the whole batch comes");
        equal(c.pull(mq, "*", 48, 32).getPullStatus(), PullStatus.OFFSET_ILLEGAL, "behind the end");
        SendResult sent = batch(env, mq.getTopic(), "q", 0, 3, "a");
        MessageExt record = env.producer().viewMessage(mq.getTopic(), sent.getOffsetMsgId());
        equal(record.getQueueOffset(), 47L, "offset of the record by its id");
        equal(record.getProperty("INNER_NUM"), "3", "its messages");
        equal(record.getProperty("INNER_BASE"), "47", "its first offset");
        require((record.getSysFlag() & 0xC0) == 0xC0, "sysFlag " + record.getSysFlag());
    }

    /** Tags of batches are not those of their messages: a consumer of some tags gets single messages only. */
    static void tags(Env env) throws Exception {
        MessageQueue mq = queue(env);
        if (mq == null) {
            return;
        }
        Sink sink = new Sink();
        DefaultMQPushConsumer c = env.push(env.group(), mq.getTopic(), "a", sink);
        env.awaitShared(mq.getTopic(), 1, c);
        batch(env, mq.getTopic(), "in a batch", 0, 5, "a");
        single(env, mq.getTopic(), "t", 0, "a");
        single(env, mq.getTopic(), "other", 0, "b");
        batch(env, mq.getTopic(), "in a batch", 5, 5, "a");
        single(env, mq.getTopic(), "t", 1, "a");
        sink.exactlyOnce("t", 2);
        env.awaitAllCommitted(c.getConsumerGroup(), mq.getTopic());
    }

    /** By time a batch is found as a whole: its first offset. */
    static void times(Env env) throws Exception {
        MessageQueue mq = queue(env);
        if (mq == null) {
            return;
        }
        batch(env, mq.getTopic(), "x", 0, 5, "a");
        Thread.sleep(50);
        long between = System.currentTimeMillis();
        Thread.sleep(50);
        batch(env, mq.getTopic(), "x", 5, 7, "a");
        batch(env, mq.getTopic(), "x", 12, 3, "a");
        Env.until("all of it", () -> env.producer().maxOffset(mq) == 15);
        equal(env.producer().searchOffset(mq, between), 5L, "the first from a time on");
        equal(env.producer().searchOffset(mq, between - 60000), 0L, "before all");
        equal(env.producer().searchOffset(mq, between + 60000), 12L, "behind all");
        require(env.producer().earliestMsgStoreTime(mq) < between, "time of the first");
    }

    /** A message of a batch that is given back comes again, and alone. */
    static void retry(Env env) throws Exception {
        MessageQueue mq = queue(env);
        if (mq == null) {
            return;
        }
        Map<String, Integer> came = new ConcurrentHashMap<>();
        Set<Integer> times = ConcurrentHashMap.newKeySet();
        DefaultMQPushConsumer c = env.newPush(env.group());
        c.setConsumeMessageBatchMaxSize(1);
        env.start(c, mq.getTopic(), "*", (MessageListenerConcurrently) (messages, context) -> {
            boolean again = false;
            for (MessageExt m : messages) {
                int n = came.merge(Sink.body(m), 1, Integer::sum);
                again = Sink.body(m).equals("r2") && n == 1;
                if (Sink.body(m).equals("r2")) {
                    times.add(m.getReconsumeTimes());
                }
            }
            context.setDelayLevelWhenNextConsume(1);
            return again ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        batch(env, mq.getTopic(), "r", 0, 4, "a");
        Env.until("r2 again", () -> came.getOrDefault("r2", 0) == 2);
        Thread.sleep(Sink.QUIET_MS);
        equal(new TreeMap<>(came).toString(), "{r0=1, r1=1, r2=2, r3=1}",
            "how often each came");
        env.note("reconsume times: " + times);
    }

    private static int code(Env env, Message m) throws Exception {
        try {
            env.producer().send(m);
        } catch (MQBrokerException e) {
            return e.getResponseCode();
        }
        return 0;
    }

    /** Nobody but the broker makes a record of several messages. */
    static void refused(Env env) throws Exception {
        MessageQueue mq = queue(env);
        if (mq == null) {
            return;
        }
        for (String topic : List.of(mq.getTopic(), env.topic(1))) {
            Message m = new Message(topic, "x".getBytes());
            m.putUserProperty("INNER_NUM", "3");
            equal(code(env, m), 13, "INNER_NUM of a producer, to " + topic);
        }
        equal(env.producer().maxOffset(mq), 0L, "nothing was stored");
    }

    /** A client that pops gets a batch as one message, which it does not take apart. */
    static void pop(Env env) throws Exception {
        MessageQueue mq = queue(env);
        if (mq == null || !Versions.hasPop()) {
            return;
        }
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        PopChecks.pop(env, PopChecks.popGroup(env, mq.getTopic()), mq.getTopic(), "*", (messages, context) -> {
            for (MessageExt m : messages) {
                got.add(m.getQueueOffset() + ":" + m.getProperty("INNER_NUM"));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        single(env, mq.getTopic(), "s", 0, "a");
        batch(env, mq.getTopic(), "s", 1, 5, "a");
        batch(env, mq.getTopic(), "s", 6, 50, "a");
        single(env, mq.getTopic(), "s", 56, "a");
        Env.until("all of it", () -> got.size() >= 4);
        Thread.sleep(Sink.QUIET_MS);
        equal(new TreeSet<>(got).toString(), new TreeSet<>(List.of("0:null", "1:5", "6:50", "56:null")).toString(),
            "what was popped");
        equal(got.size(), 4, "messages");
    }

    /** After a kill everything is there, and offsets go on. */
    static void overRestart(Env env) throws Exception {
        MessageQueue mq = queue(env);
        if (mq == null) {
            return;
        }
        some(env, mq.getTopic(), "b");
        Thread.sleep(1000);         // the reference writes to the device a little later
        env.restartBroker();
        equal(env.producer().maxOffset(mq), 47L, "max offset after a kill");
        equal(batch(env, mq.getTopic(), "b", 47, 3, "a").getQueueOffset(), 47L, "the next offset");
        Sink sink = new Sink();
        env.push(env.group(), mq.getTopic(), "*", sink);
        expectOffsets(sink.exactlyOnce("b", 50), "b", 0);
    }
}
