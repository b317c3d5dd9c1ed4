package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** POP where a group begins and is set back to, and its requests one by one: clients of 5.x only. */
final class PopRequestChecks {
    private static final int MIN = 0;
    private static final int MAX = 1;
    private static final int PULL_NOT_FOUND = 19;

    private PopRequestChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("pop_init_young", PopRequestChecks::initYoung);
        all.put("pop_peek", PopRequestChecks::peek);
        all.put("pop_polling_info", PopRequestChecks::pollingInfo);
        all.put("pop_rollback", PopRequestChecks::rollback);
        all.put("pop_reset", PopRequestChecks::reset);
        all.put("pop_reset_skip", PopRequestChecks::resetSkip);
    }

    /** With a broker that has initPopOffsetByCheckMsgInMem=false. */
    static void addAlone(Map<String, Check> all) {
        all.put("pop_init_modes", PopRequestChecks::initModes);
    }

    private static Set<String> numbered(String prefix, int from, int to) {
        Set<String> all = new TreeSet<>();
        for (int i = from; i < to; i++) {
            all.add(prefix + i);
        }
        return all;
    }

    private static void popFrom(Env env, String topic, String group, ConsumeFromWhere where, Sink sink) throws Exception {
        DefaultMQPushConsumer c = env.newPush(group);
        Versions.setClientRebalance(c, false);
        c.setConsumeFromWhere(where);
        env.start(c, topic, "*", sink);
        Env.until("queues of " + topic + " to pop", () -> !Versions.popQueues(c, topic).isEmpty());
    }

    /** From the end is from the beginning while a topic is young. */
    static void initYoung(Env env) throws Exception {
        String topic = env.topic(2);
        env.sendMany(topic, "m", 20);
        Sink sink = new Sink();
        popFrom(env, topic, PopChecks.popGroup(env, topic), ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, sink);
        sink.exactlyOnce("m", 20);
    }

    /**
     * From the end is from the last message of each queue, from the beginning all of them; whatever a later pop of the
     * group says. By push consumers, and by a request.
     */
    static void initModes(Env env) throws Exception {
        String topic = env.topic(2);
        env.sendMany(topic, "m", 20);
        Sink first = new Sink();
        Sink last = new Sink();
        PopApi api = new PopApi(env, topic, PopChecks.popGroup(env, topic));
        equal(PopApi.bodies(api.popAll(2, 60000, MAX)), numbered("m", 18, 20), "messages of a group that begins at the end");
        equal(PopApi.bodies(api.pop(32, 60000, MIN)), Set.of(), "messages of the group from the beginning, afterwards");
        api = new PopApi(env, topic, PopChecks.popGroup(env, topic));
        equal(PopApi.bodies(api.popAll(20, 60000, MIN)), numbered("m", 0, 20), "messages of a group that begins at the beginning");
        popFrom(env, topic, PopChecks.popGroup(env, topic), ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, first);
        popFrom(env, topic, PopChecks.popGroup(env, topic), ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, last);
        first.exactlyOnce("m", 20);
        last.exactlyOnce(numbered("m", 18, 20));
        env.sendMany(topic, "later", 4);
        Set<String> want = numbered("later", 0, 4);
        want.addAll(numbered("m", 18, 20));
        last.exactlyOnce(want);
        want.addAll(numbered("m", 0, 20));
        first.exactlyOnce(want);
    }

    private static void awaitPeek(PopApi api, Set<String> want) throws Exception {
        TreeSet<String> got = new TreeSet<>();
        try {
            Env.until("", () -> {
                got.clear();
                got.addAll(api.peek(-1, 32).bodies());
                return got.equals(want);
            });
        } catch (Failure e) {
            equal(got, want, "messages at a peek");
        }
    }

    /** A peek shows what the next pops get, and takes nothing; a message whose time is up is there again. */
    static void peek(Env env) throws Exception {
        String topic = env.topic(2);
        PopApi api = new PopApi(env, topic, PopChecks.popGroup(env, topic));
        equal(api.peek(-1, 32).code(), PULL_NOT_FOUND, "answer to a peek of an empty topic");
        env.sendMany(topic, "m", 10);
        Set<String> left = numbered("m", 0, 10);
        awaitPeek(api, left);
        PopApi.Answer again = api.peek(-1, 32);
        equal(again.bodies(), left, "messages at a second peek");
        equal(again.number("restNum"), 10L, "rest at a peek");
        equal(api.peek(1, 32).bodies(), Set.of("m1", "m3", "m5", "m7", "m9"), "messages of queue 1 at a peek");
        equal(api.peek(-1, 3).bodies().size(), 3, "messages at a peek for 3");
        require(api.peek(2, 32).code() != 0, "a peek of a queue that is not there was answered");
        List<MessageExt> some = api.pop(4, 60000, MIN);
        require(!some.isEmpty(), "nothing to pop after a peek");
        left.removeAll(PopApi.bodies(some));
        awaitPeek(api, left);
        List<MessageExt> rest = api.popAll(left.size(), 5000, MIN);
        equal(PopApi.bodies(rest), left, "messages after a peek");
        equal(api.peek(-1, 32).bodies(), Set.of(), "messages at a peek when all were popped");
        for (MessageExt m : rest.subList(2, rest.size())) {
            api.ack(m);
        }
        awaitPeek(api, PopApi.bodies(rest.subList(0, 2)));
    }

    private static void awaitPolling(PopApi api, int queue, long want) throws Exception {
        Env.until(want + " pops that wait for queue " + queue, () -> api.polling(queue).number("pollingNum") == want);
    }

    /** The pops that wait: of any queue, of one; fewer when a message comes, none when their time is up. */
    static void pollingInfo(Env env) throws Exception {
        String topic = env.topic(2);
        String group = PopChecks.popGroup(env, topic);
        PopApi api = new PopApi(env, topic, group);
        PopApi other = new PopApi(env, topic, PopChecks.popGroup(env, topic));
        awaitPolling(api, -1, 0);
        List<CompletableFuture<List<MessageExt>>> waiting = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            waiting.add(api.popLater(-1, 32, 60000, 20000, MIN));
        }
        CompletableFuture<List<MessageExt>> ofOne = api.popLater(1, 32, 60000, 20000, MIN);
        awaitPolling(api, -1, 3);
        awaitPolling(api, 1, 1);
        awaitPolling(api, 0, 0);
        awaitPolling(other, -1, 0);
        require(api.polling(2).code() != 0, "a queue that is not there has a number of waiting pops");
        MessageQueue queue = env.queues(topic).get(0);
        env.producer().send(new org.apache.rocketmq.common.message.Message(topic, "one".getBytes()), queue);
        awaitPolling(api, -1, 2);
        awaitPolling(api, 1, 1);
        List<MessageExt> got = new ArrayList<>();
        for (CompletableFuture<List<MessageExt>> w : waiting) {
            got.addAll(w.get(Env.DEADLINE_S, java.util.concurrent.TimeUnit.SECONDS));
        }
        equal(PopApi.bodies(got), Set.of("one"), "what the waiting pops got");
        equal(got.size(), 1, "how often it came");
        equal(ofOne.get(Env.DEADLINE_S, java.util.concurrent.TimeUnit.SECONDS).size(), 0, "messages of queue 1");
        awaitPolling(api, -1, 0);
        awaitPolling(api, 1, 0);
    }

    /** A roll-back while messages are out: handles still count, the others come again, counted, and no more. */
    static void rollback(Env env) throws Exception {
        String topic = env.topic(2);
        PopApi api = new PopApi(env, topic, PopChecks.popGroup(env, topic));
        env.sendMany(topic, "m", 10);
        List<MessageExt> all = api.popAll(10, 20000, MIN);
        equal(all.size(), 10, "messages");
        for (MessageExt m : all.subList(0, 5)) {
            api.ack(m);
        }
        api.rollback();
        for (MessageExt m : all.subList(5, 7)) {
            api.ack(m);
        }
        List<MessageExt> again = api.popAll(3, 60000, MIN);
        equal(again.size(), 3, "messages that come again");
        equal(PopApi.bodies(again), PopApi.bodies(all.subList(7, 10)), "messages that come again");
        for (MessageExt m : again) {
            equal(m.getReconsumeTimes(), 1, "times that " + Sink.body(m) + " came before");
            api.ack(m);
        }
        api.rollback();
        equal(api.pop(32, 60000, MIN).size(), 0, "messages at the end");
    }

    /** A group that pops is set back to a time, consumers at work or not: what came since comes again, once. */
    static void reset(Env env) throws Exception {
        String topic = env.topic(2);
        String group = PopChecks.popGroup(env, topic);
        Sink sink = new Sink();
        DefaultMQPushConsumer c = PopChecks.pop(env, group, topic, "*", sink);
        long between = ReplayChecks.sendOldAndNew(env, topic);
        Env.until("40 messages", () -> sink.messages().size() == 40);
        env.awaitAllCommitted(group, topic);
        sink.clear();
        ReplayChecks.reset(env, topic, group, between);
        sink.exactlyOnce("new", 20);
        env.awaitAllCommitted(group, topic);
        c.shutdown();
        sink.clear();
        ReplayChecks.reset(env, topic, group, between);
        PopChecks.pop(env, group, topic, "*", sink);
        sink.exactlyOnce("new", 20);
        env.awaitAllCommitted(group, topic);
    }

    /** To the end: what has piled up is skipped. To the beginning, with messages out: all come. */
    static void resetSkip(Env env) throws Exception {
        String topic = env.topic(2);
        PopApi api = new PopApi(env, topic, PopChecks.popGroup(env, topic));
        env.sendMany(topic, "m", 10);
        for (MessageExt m : api.popAll(10, 60000, MIN)) {
            api.ack(m);
        }
        env.sendMany(topic, "skipped", 10);
        ReplayChecks.reset(env, topic, api.group(), -1);
        env.sendMany(topic, "then", 10);
        equal(PopApi.bodies(api.popAll(10, 60000, MIN)), numbered("then", 0, 10), "messages after a reset to the end");
        ReplayChecks.reset(env, topic, api.group(), 0);
        Set<String> want = numbered("m", 0, 10);
        want.addAll(numbered("skipped", 0, 10));
        want.addAll(numbered("then", 0, 10));
        List<MessageExt> got = api.popAll(30, 60000, MIN);
        equal(PopApi.bodies(got), want, "messages after a reset to the beginning");
        equal(got.size(), 30, "messages after a reset to the beginning");
    }
}
