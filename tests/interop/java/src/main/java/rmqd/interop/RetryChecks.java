package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages that consumers give back: until they are dead letters, and at the limits of size. */
final class RetryChecks {
    private static final int MAX_BODY = 4 * 1024 * 1024;

    private RetryChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("retry_dead_letter", RetryChecks::deadLetter);
        all.put("retry_large_body", RetryChecks::largeBody);
        all.put("retry_long_properties", RetryChecks::longProperties);
    }

    /** What comes from the dead-letter queue of a group. */
    static final class DeadLetters {
        private final List<MessageExt> got = Collections.synchronizedList(new ArrayList<>());

        DeadLetters(Env env, String group) throws Exception {
            DefaultMQPushConsumer c = env.newPush(env.group());
            c.setPollNameServerInterval(1000);
            env.start(c, "%DLQ%" + group, "*", (MessageListenerConcurrently) (msgs, context) -> {
                got.addAll(msgs);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }

        void await(int n) throws Exception {
            Env.until(n + " dead letters", () -> got.size() >= n);
            Thread.sleep(Sink.QUIET_MS);
            equal(got.size(), n, "dead letters");
        }

        List<MessageExt> messages() {
            return new ArrayList<>(got);
        }
    }

    /** Gives every message back, with the shortest delay, so many times at most; keeps what came. */
    private static List<MessageExt> failing(Env env, String topic, String group, int maxTimes) throws Exception {
        List<MessageExt> got = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer c = env.newPush(group);
        c.setPollNameServerInterval(1000);
        c.setMaxReconsumeTimes(maxTimes);
        env.start(c, topic, "*", (MessageListenerConcurrently) (msgs, context) -> {
            got.addAll(msgs);
            context.setDelayLevelWhenNextConsume(1);
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        return got;
    }

    /** After its times a message is a dead letter, with all that it had and where it was from, and does not come again. */
    static void deadLetter(Env env) throws Exception {
        String topic = env.topic(1);
        String group = env.group();
        List<MessageExt> got = failing(env, topic, group, 2);
        Message m = new Message(topic, "tag", "key", "hopeless".getBytes());
        m.putUserProperty("mine", "kept");
        String id = env.send(m).getMsgId();
        Env.until("three deliveries", () -> got.size() >= 3);
        DeadLetters dead = new DeadLetters(env, group);
        dead.await(1);
        equal(got.size(), 3, "deliveries");
        for (int i = 0; i < 3; i++) {
            equal(got.get(i).getReconsumeTimes(), i, "reconsume times of delivery " + i);
            equal(got.get(i).getTopic(), topic, "topic of delivery " + i);
        }
        MessageExt d = dead.messages().get(0);
        equal(Sink.body(d), "hopeless", "body");
        equal(d.getMsgId(), id, "id");
        equal(d.getTags(), "tag", "tag");
        equal(d.getKeys(), "key", "keys");
        equal(d.getUserProperty("mine"), "kept", "property");
        equal(d.getReconsumeTimes(), 3, "reconsume times");
        equal(d.getProperty("RETRY_TOPIC"), topic, "where it was from");
        require(d.getProperty("ORIGIN_MESSAGE_ID") != null, "its first id");
    }

    /** The largest body that a broker takes comes back as well. */
    static void largeBody(Env env) throws Exception {
        String topic = env.topic(1);
        String group = env.group();
        byte[] body = new byte[MAX_BODY];
        new Random(1).nextBytes(body);
        env.producer().setMaxMessageSize(MAX_BODY);
        env.producer().setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        List<MessageExt> got = failing(env, topic, group, 1);
        env.send(new Message(topic, body));
        Env.until("two deliveries", () -> got.size() >= 2);
        DeadLetters dead = new DeadLetters(env, group);
        dead.await(1);
        for (MessageExt m : new MessageExt[] {got.get(1), dead.messages().get(0)}) {
            require(java.util.Arrays.equals(m.getBody(), body), "the body changed");
        }
    }

    /** Sends with properties as long as the broker takes; null when that is too long. */
    private static String sendLong(Env env, String topic, int length) throws Exception {
        Message m = new Message(topic, ("p" + length).getBytes());
        m.putUserProperty("p", String.join("", Collections.nCopies(length, "x")));
        try {
            env.send(m);
            return "p" + length;
        } catch (MQBrokerException e) {
            return null;
        }
    }

    /** Properties at the limit leave no room for what a retry adds: the message is not lost, and holds up no other. */
    static void longProperties(Env env) throws Exception {
        String topic = env.topic(1);
        String group = env.group();
        int low = 32000;
        for (int step = 512; step > 0; step /= 2) {
            while (sendLong(env, topic, low + step) != null) {
                low += step;
            }
        }
        env.note("the longest property that is taken: " + low);
        List<MessageExt> got = failing(env, topic, group, 1);
        int sent = (int) env.producer().maxOffset(env.queues(topic).get(0));
        DeadLetters dead = new DeadLetters(env, group);
        dead.await(sent);
        int times = got.size();
        Thread.sleep(7000);     // a client that cannot give back tries again after 5 s
        equal(got.size(), times, "deliveries a while later");
        require(dead.messages().stream().anyMatch(m -> m.getProperty("p").length() >= 32500), "the longest");
        env.awaitAllCommitted(group, topic);
    }
}
