package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

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
        equal(came.find("now"), 0, "place of the one without delay");
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
        equal(came.find("past"), 0, "place of the one whose time has passed");
        List<String> bodies = Arrays.asList("seconds", "millis", "time");
        for (int i = 0; i < bodies.size(); i++) {
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
