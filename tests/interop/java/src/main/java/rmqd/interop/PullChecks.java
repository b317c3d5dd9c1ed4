package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that ask for their messages themselves. */
final class PullChecks {
    private PullChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("pull", PullChecks::pull);
        all.put("pull_offsets", PullChecks::offsets);
        all.put("lite_pull_assign", PullChecks::liteAssign);
        all.put("lite_pull_subscribe", PullChecks::liteSubscribe);
    }

    static DefaultMQPullConsumer pullConsumer(Env env, String group) throws Exception {
        DefaultMQPullConsumer c = new DefaultMQPullConsumer(group);
        c.setNamesrvAddr(env.namesrv);
        c.setInstanceName(env.name("i"));
        c.setMqClientApiTimeout(Env.API_TIMEOUT_MS);
        c.start();
        env.onClose(c::shutdown);
        return c;
    }

    /** Pulling from the start gives each message in order, then "no new message"; past the end is illegal. */
    static void pull(Env env) throws Exception {
        String topic = env.topic(2);
        env.sendMany(topic, "p", 100);
        DefaultMQPullConsumer c = pullConsumer(env, env.group());
        Set<MessageQueue> mqs = c.fetchSubscribeMessageQueues(topic);
        equal(mqs.size(), 2, "queues");
        for (MessageQueue mq : mqs) {
            long offset = c.minOffset(mq);
            equal(offset, 0L, "min offset");
            equal(c.maxOffset(mq), 50L, "max offset");
            int n = 0;
            while (true) {
                PullResult r = c.pull(mq, "*", offset, 16);
                if (r.getPullStatus() == PullStatus.NO_NEW_MSG) {
                    break;
                }
                equal(r.getPullStatus(), PullStatus.FOUND, "status at offset " + offset);
                equal(r.getMinOffset(), 0L, "min offset of an answer");
                equal(r.getMaxOffset(), 50L, "max offset of an answer");
                require(r.getMsgFoundList().size() <= 16, "more messages than asked for");
                for (MessageExt m : r.getMsgFoundList()) {
                    equal(m.getQueueOffset(), (long) n, "queue offset");
                    equal(Sink.body(m), "p" + (n * 2 + mq.getQueueId()), "body");
                    n++;
                }
                equal(r.getNextBeginOffset(), (long) n, "next offset");
                offset = r.getNextBeginOffset();
            }
            equal(n, 50, "messages of " + mq);
            PullResult r = c.pull(mq, "*", 1000, 16);
            equal(r.getPullStatus(), PullStatus.OFFSET_ILLEGAL, "status past the end");
            equal(r.getNextBeginOffset(), 50L, "next offset past the end");
        }
        waiting(env, c, mqs.iterator().next());
    }

    /** A blocking pull at the end of the queue is answered by the next message. */
    private static void waiting(Env env, DefaultMQPullConsumer c, MessageQueue mq) throws Exception {
        Thread later = new Thread(() -> {
            try {
                Thread.sleep(500);
                env.producer().send(new Message(mq.getTopic(), "waited".getBytes()), mq);
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        later.start();
        PullResult r = c.pullBlockIfNotFound(mq, "*", 50, 16);
        later.join();
        equal(r.getPullStatus(), PullStatus.FOUND, "status of the pull that waited");
        equal(Sink.body(r.getMsgFoundList().get(0)), "waited", "body of the message it waited for");
    }

    /** Offsets by time; offsets of a group are kept by the broker for the next consumer. */
    static void offsets(Env env) throws Exception {
        String topic = env.topic(1);
        env.sendMany(topic, "o", 10);
        Thread.sleep(1500);
        long between = System.currentTimeMillis() - 700;
        env.sendMany(topic, "o", 10);
        String group = env.group();
        DefaultMQPullConsumer c = pullConsumer(env, group);
        MessageQueue mq = c.fetchSubscribeMessageQueues(topic).iterator().next();
        equal(c.searchOffset(mq, between), 10L, "offset of a time between two groups of sends");
        equal(c.searchOffset(mq, 0), 0L, "offset of the beginning of time");
        // A broker takes offsets of groups that it knows; the first pull makes this one known.
        equal(c.pull(mq, "*", 0, 1).getPullStatus(), PullStatus.FOUND, "status of a pull");
        c.getOffsetStore().updateConsumeOffsetToBroker(mq, 7, false);
        equal(c.fetchConsumeOffset(mq, true), 7L, "offset of the group");
        DefaultMQPullConsumer d = pullConsumer(env, group);
        equal(d.fetchConsumeOffset(mq, true), 7L, "offset that another member sees");
        equal(Sink.body(d.pull(mq, "*", 7, 1).getMsgFoundList().get(0)), "o7", "message at the offset");
    }

    private static DefaultLitePullConsumer lite(Env env, String group) {
        DefaultLitePullConsumer c = new DefaultLitePullConsumer(group);
        c.setNamesrvAddr(env.namesrv);
        c.setInstanceName(env.name("i"));
        c.setMqClientApiTimeout(Env.API_TIMEOUT_MS);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        env.onClose(c::shutdown);
        return c;
    }

    private static void drain(DefaultLitePullConsumer c, Sink sink, int n) throws Exception {
        Env.until(n + " messages by poll", () -> {
            List<MessageExt> l = c.poll(500);
            sink.add("", l);
            return sink.messages().size() >= n;
        });
        sink.add("", c.poll(1000));
    }

    /** Assigned queues, a seek, and a commit that the broker keeps. */
    static void liteAssign(Env env) throws Exception {
        String topic = env.topic(1);
        env.sendMany(topic, "q", 50);
        String group = env.group();
        DefaultLitePullConsumer c = lite(env, group);
        c.setAutoCommit(false);
        c.start();
        MessageQueue mq = c.fetchMessageQueues(topic).iterator().next();
        c.assign(Collections.singletonList(mq));
        Sink all = new Sink();
        drain(c, all, 50);
        all.exactlyOnce("q", 50);
        c.seek(mq, 40);
        Sink tail = new Sink();
        drain(c, tail, 10);
        Set<String> want = new HashSet<>();
        for (int i = 40; i < 50; i++) {
            want.add("q" + i);
        }
        tail.exactlyOnce(want);
        c.commitSync();
        Env.until("the commit arrives", () -> env.committed(group, mq) == 50);
        equal(c.committed(mq), 50L, "committed offset");
        require(c.offsetForTimestamp(mq, 0L) == 0, "offset of the beginning of time");
    }

    /** Two subscribed members share the queues, and a later member goes on from the commits. */
    static void liteSubscribe(Env env) throws Exception {
        String topic = env.topic(4);
        String group = env.group();
        DefaultLitePullConsumer a = lite(env, group);
        a.setAutoCommitIntervalMillis(1000);
        a.subscribe(topic, "*");
        a.start();
        env.sendMany(topic, "first", 40);
        Sink sink = new Sink();
        drain(a, sink, 40);
        sink.exactlyOnce("first", 40);
        a.commitSync();
        env.awaitAllCommitted(group, topic);
        a.shutdown();
        env.sendMany(topic, "second", 40);
        DefaultLitePullConsumer b = lite(env, group);
        b.subscribe(topic, "*");
        b.start();
        Sink next = new Sink();
        drain(b, next, 40);
        next.exactlyOnce("second", 40);
    }
}
