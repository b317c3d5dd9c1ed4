package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Messages that come later: by level, by any delay, and recalled before their time. */
final class DelayChecks {
    private static final int NO_PERMISSION = 16;
    private static final int MESSAGE_ILLEGAL = 13;

    private DelayChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("delay_level", DelayChecks::level);
        all.put("delay_any", DelayChecks::any);
        all.put("delay_refused", DelayChecks::refused);
        all.put("delay_recall", DelayChecks::recall);
        all.put("delay_clamped", DelayChecks::clamped);
        all.put("delay_level_refused", DelayChecks::levelRefused);
        all.put("delay_overflow", DelayChecks::overflow);
        all.put("delay_retried", DelayChecks::retried);
    }

    /** Those that need a broker of their own. */
    static void addAlone(Map<String, Check> all) {
        all.put("delay_over_restart", DelayChecks::overRestart);
    }

    private static final class Came {
        final List<MessageExt> messages = Collections.synchronizedList(new ArrayList<>());
        final List<Long> times = Collections.synchronizedList(new ArrayList<>());

        void listen(Env env, String topic, String tags) throws Exception {
            env.push(env.group(), topic, tags, (MessageListenerConcurrently) (msgs, context) -> {
                for (MessageExt m : msgs) {
                    times.add(System.currentTimeMillis());
                    messages.add(m);
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }

        Set<String> bodies() {
            Set<String> all = new HashSet<>();
            new ArrayList<>(messages).forEach(m -> all.add(Sink.body(m)));
            return all;
        }

        int find(String body) throws Failure {
            for (int i = 0; i < messages.size(); i++) {
                if (Sink.body(messages.get(i)).equals(body)) {
                    return i;
                }
            }
            throw new Failure(body + " did not come");
        }
    }

    private static Message timed(String topic, String body, String name, String value) {
        Message m = new Message(topic, "tag", "key", body.getBytes());
        MessageAccessor.putProperty(m, name, value);
        return m;
    }

    /** A level delays, and changes nothing else of the message; level 0 does not delay. */
    static void level(Env env) throws Exception {
        String topic = env.topic(1);
        Came came = new Came();
        came.listen(env, topic, "tag");
        Message m = new Message(topic, "tag", "key", "later".getBytes());
        m.setDelayTimeLevel(2);
        long sent = System.currentTimeMillis();
        String id = env.send(m).getMsgId();
        env.send(new Message(topic, "tag", "key", "now".getBytes()));
        Env.until("both", () -> came.messages.size() >= 2);
        Thread.sleep(Sink.QUIET_MS);
        equal(came.messages.size(), 2, "deliveries");
        int later = came.find("later");
        // Not which was listened to first: one pull may have brought both to several threads.
        equal(came.messages.get(came.find("now")).getQueueOffset(), 0L, "queue offset of the one without delay");
        require(came.times.get(later) - sent >= 5000, "level 2 came after " + (came.times.get(later) - sent) + " ms");
        MessageExt got = came.messages.get(later);
        equal(got.getMsgId(), id, "id");
        equal(got.getTopic(), topic, "topic");
        equal(got.getKeys(), "key", "keys");
    }

    /** Delays in seconds and milliseconds and a time of day: never early (but for the second that 5.5.0 rounds to). */
    static void any(Env env) throws Exception {
        String topic = env.topic(2);
        Came came = new Came();
        came.listen(env, topic, "*");
        long now = System.currentTimeMillis();
        long[] due = {now + 3000, now + 4200, now + 5300};
        env.send(timed(topic, "seconds", "TIMER_DELAY_SEC", "3"));
        env.send(timed(topic, "millis", "TIMER_DELAY_MS", "4200"));
        String id = env.send(timed(topic, "time", "TIMER_DELIVER_MS", "" + due[2])).getMsgId();
        env.send(timed(topic, "past", "TIMER_DELIVER_MS", "" + (now - 5000)));
        Env.until("all four", () -> came.messages.size() >= 4);
        Thread.sleep(Sink.QUIET_MS);
        equal(came.messages.size(), 4, "deliveries");
        long past = came.messages.get(came.find("past")).getStoreTimestamp();
        List<String> bodies = Arrays.asList("seconds", "millis", "time");
        for (int i = 0; i < bodies.size(); i++) {
            require(past <= came.messages.get(came.find(bodies.get(i))).getStoreTimestamp(),
                "the one whose time has passed was stored after " + bodies.get(i));
            long time = came.times.get(came.find(bodies.get(i)));
            // An exact second is taken for the one before.
            require(time >= (due[i] - 1) / 1000 * 1000 - 1000, bodies.get(i) + " came " + (due[i] - time) + " ms early");
        }
        MessageExt got = came.messages.get(came.find("time"));
        equal(got.getMsgId(), id, "id");
        equal(got.getTopic(), topic, "topic");
        equal(got.getTags(), "tag", "tag");
        equal(got.getKeys(), "key", "keys");
    }

    /** What cannot be is refused. */
    static void refused(Env env) throws Exception {
        String topic = env.topic(1);
        String[][] wrong = {{"TIMER_DELAY_SEC", "34560000"}, {"TIMER_DELAY_MS", "34560000000"},
            {"TIMER_DELAY_SEC", "soon"}, {"TIMER_DELAY_MS", "1.5"},
            {"TIMER_DELIVER_MS", "" + (System.currentTimeMillis() + 34560000000L)}, {"TIMER_DELIVER_MS", "x"}};
        for (String[] w : wrong) {
            try {
                env.producer().send(timed(topic, "x", w[0], w[1]));
                throw new Failure(w[0] + "=" + w[1] + " was taken");
            } catch (MQBrokerException e) {
                equal(e.getResponseCode(), MESSAGE_ILLEGAL, "code for " + w[0] + "=" + w[1]);
            }
        }
        equal(env.producer().maxOffset(env.queues(topic).get(0)), 0L, "messages that were stored");
    }

    /** A level beyond the last is the last. */
    static void clamped(Env env) throws Exception {
        String topic = env.topic(1);
        Message m = new Message(topic, "far".getBytes());
        m.setDelayTimeLevel(1000);
        SendResult r = env.send(m);
        MessageQueue last = new MessageQueue("SCHEDULE_TOPIC_XXXX", r.getMessageQueue().getBrokerName(), 17);
        DefaultMQPullConsumer c = PullChecks.pullConsumer(env, env.group());
        PullResult pulled = c.pull(last, "*", r.getQueueOffset(), 1);
        equal(Sink.body(pulled.getMsgFoundList().get(0)), "far", "what lies in the queue of the last level");
        equal(env.producer().maxOffset(env.queues(topic).get(0)), 0L, "messages that came already");
    }

    /** A level that is no number is refused, not delivered at once. */
    static void levelRefused(Env env) throws Exception {
        String topic = env.topic(1);
        for (String level : new String[] {"soon", "1.5"}) {
            try {
                env.producer().send(timed(topic, "x", "DELAY", level));
                throw new Failure("DELAY=" + level + " was taken");
            } catch (MQBrokerException e) {
                env.note("DELAY=" + level + " is answered by " + e.getResponseCode());
            } catch (MQClientException e) {     // by a code with which the client tries again
                env.note("DELAY=" + level + " is answered by " + e.getResponseCode());
            }
        }
        equal(env.producer().maxOffset(env.queues(topic).get(0)), 0L, "messages that were stored");
    }

    /** The largest number is too long a delay as well. */
    static void overflow(Env env) throws Exception {
        String topic = env.topic(1);
        for (String name : new String[] {"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"}) {
            try {
                env.producer().send(timed(topic, "x", name, "" + Long.MAX_VALUE));
                throw new Failure(name + "=" + Long.MAX_VALUE + " was taken");
            } catch (MQBrokerException e) {
                equal(e.getResponseCode(), MESSAGE_ILLEGAL, "code for " + name);
            }
        }
        equal(env.producer().maxOffset(env.queues(topic).get(0)), 0L, "messages that were stored");
    }

    /** A delayed message that its consumer gives back is delayed by its retry alone. */
    static void retried(Env env) throws Exception {
        String topic = env.topic(1);
        List<MessageExt> got = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer c = env.newPush(env.group());
        c.setPollNameServerInterval(1000);
        env.start(c, topic, "*", (MessageListenerConcurrently) (msgs, context) -> {
            got.addAll(msgs);
            context.setDelayLevelWhenNextConsume(1);
            return msgs.get(0).getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        env.send(timed(topic, "timer", "TIMER_DELAY_MS", "2500"));
        Message level = new Message(topic, "level".getBytes());
        level.setDelayTimeLevel(1);
        env.send(level);
        Env.until("each twice", () -> got.size() >= 4);
        Thread.sleep(Sink.QUIET_MS);
        equal(got.size(), 4, "deliveries");
        for (String body : new String[] {"timer", "level"}) {
            List<MessageExt> mine = new ArrayList<>(got);
            mine.removeIf(m -> !Sink.body(m).equals(body));
            equal(mine.size(), 2, "deliveries of " + body);
            equal(mine.get(1).getReconsumeTimes(), 1, "reconsume times of the second");
            equal(mine.get(1).getTopic(), topic, "topic of the second");
        }
    }

    /** Pending delays live through a kill of the broker: not early, once, and not lost. */
    static void overRestart(Env env) throws Exception {
        String topic = env.topic(2);
        Came came = new Came();
        came.listen(env, topic, "*");
        long now = System.currentTimeMillis();
        Map<String, Long> due = new HashMap<>();
        for (int i = 0; i < 10; i++) {
            Message level = new Message(topic, ("level" + i).getBytes());
            level.setDelayTimeLevel(4);
            env.send(level);
            due.put("level" + i, now + 30000);
            env.send(timed(topic, "timer" + i, "TIMER_DELIVER_MS", "" + (now + 20000 + i * 2000)));
            due.put("timer" + i, now + 20000 + i * 2000);
        }
        env.restartBroker();
        Env.until("all 20", 150, () -> came.bodies().size() == 20);
        Thread.sleep(12000);    // what is delivered twice may come later
        equal(came.messages.size(), 20, "deliveries");
        for (int i = 0; i < came.messages.size(); i++) {
            String body = Sink.body(came.messages.get(i));
            // The reference takes an exact second for the one before.
            long earliest = (due.get(body) - 1) / 1000 * 1000 - (body.startsWith("timer") ? 1000 : 0);
            require(came.times.get(i) >= earliest, body + " came " + (due.get(body) - came.times.get(i)) + " ms early");
        }
    }

    /** A recalled message does not come, its neighbour does. For clients that can (5.4). */
    static void recall(Env env) throws Exception {
        java.lang.reflect.Method handleOf;
        java.lang.reflect.Method recall;
        try {
            handleOf = SendResult.class.getMethod("getRecallHandle");
            recall = env.producer().getClass().getMethod("recallMessage", String.class, String.class);
        } catch (NoSuchMethodException e) {
            env.note("this client cannot recall");
            return;
        }
        String topic = env.topic(1);
        Came came = new Came();
        came.listen(env, topic, "*");
        env.send(timed(topic, "kept", "TIMER_DELAY_MS", "6000"));
        SendResult sent = env.send(timed(topic, "recalled", "TIMER_DELAY_MS", "6000"));
        Object handle = handleOf.invoke(sent);
        require(handle != null, "no recall handle in the answer");
        try {
            equal(recall.invoke(env.producer(), topic, handle), sent.getMsgId(), "what the recall returns");
        } catch (java.lang.reflect.InvocationTargetException e) {
            if (e.getCause() instanceof MQBrokerException
                && ((MQBrokerException) e.getCause()).getResponseCode() == NO_PERMISSION) {
                env.note("this broker does not take recalls (recallMessageEnable)");
                return;
            }
            throw e;
        }
        Env.until("the other one", () -> came.messages.size() >= 1);
        Thread.sleep(Sink.QUIET_MS);
        equal(came.messages.size(), 1, "deliveries");
        came.find("kept");
    }
}
