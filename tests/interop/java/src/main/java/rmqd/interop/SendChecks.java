package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The ways to send, and what arrives: nothing lost, nothing changed. */
final class SendChecks {
    private SendChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("create_topic", SendChecks::createTopic);
        all.put("send_sync", SendChecks::sync);
        all.put("send_async", SendChecks::async);
        all.put("send_oneway", SendChecks::oneway);
        all.put("send_batch", SendChecks::batch);
        all.put("send_auto_topic", SendChecks::autoTopic);
        all.put("send_content", SendChecks::content);
        all.put("view_message", SendChecks::viewMessage);
        all.put("send_repeated", SendChecks::repeated);
    }

    /** A topic has the number of queues it was created with, and a second creation changes it. */
    static void createTopic(Env env) throws Exception {
        String topic = env.topic(3);
        for (MessageQueue mq : env.queues(topic)) {
            equal(env.producer().maxOffset(mq), 0L, "max offset of an empty queue");
        }
        env.createTopic(topic, 5);
        equal(env.queues(topic).get(4).getQueueId(), 4, "last queue id");
    }

    /** Results have ids and dense queue offsets; the consumer sees the same ids and offsets. */
    static void sync(Env env) throws Exception {
        String topic = env.topic(4);
        Map<String, SendResult> results = new HashMap<>();
        Map<Integer, Long> next = new HashMap<>();
        for (int i = 0; i < 40; i++) {
            SendResult r = env.send(new Message(topic, ("s" + i).getBytes()));
            results.put(r.getMsgId(), r);
            require(r.getOffsetMsgId() != null && r.getOffsetMsgId().length() == 32,
                "offset message id: " + r.getOffsetMsgId());
            equal(r.getQueueOffset(), next.merge(r.getMessageQueue().getQueueId(), 1L, Long::sum) - 1,
                "queue offset in queue " + r.getMessageQueue().getQueueId());
        }
        equal(results.size(), 40, "distinct message ids");
        require(next.size() == 4, "the sends used only the queues " + next.keySet());
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        for (MessageExt m : sink.exactlyOnce("s", 40)) {
            SendResult r = results.get(m.getMsgId());
            require(r != null, "received with an id that no send returned: " + m.getMsgId());
            equal(m.getQueueOffset(), r.getQueueOffset(), "queue offset of " + m.getMsgId());
            equal(m.getQueueId(), r.getMessageQueue().getQueueId(), "queue id of " + m.getMsgId());
            equal(m.getTopic(), topic, "topic");
            equal(m.getReconsumeTimes(), 0, "reconsume times");
            require(m.getBornTimestamp() > 0 && m.getStoreTimestamp() > 0, "time stamps are missing");
        }
    }

    /** 200 sends, 32 in flight. A broker may say that it is busy (code 2, nothing stored): that one is sent again. */
    static void async(Env env) throws Exception {
        String topic = env.topic(4);
        int n = 200;
        Semaphore window = new Semaphore(32);
        ConcurrentLinkedQueue<String> again = new ConcurrentLinkedQueue<>();
        ConcurrentLinkedQueue<String> bad = new ConcurrentLinkedQueue<>();
        Set<String> ids = ConcurrentHashMap.newKeySet();
        for (int i = 0; i < n; i++) {
            again.add("a" + i);
        }
        int busy = -n;
        while (!again.isEmpty() && bad.isEmpty()) {
            for (String body = again.poll(); body != null; body = again.poll()) {
                busy++;
                require(window.tryAcquire(Env.DEADLINE_S, TimeUnit.SECONDS), "a send was never answered");
                env.producer().send(new Message(topic, body.getBytes()), callback(body, window, again, bad, ids));
            }
            require(window.tryAcquire(32, Env.DEADLINE_S, TimeUnit.SECONDS), "a send was never answered");
            window.release(32);
        }
        require(bad.isEmpty(), bad.size() + " sends failed, first: " + bad.peek());
        if (busy > 0) {
            env.note(busy + " sends were answered by SYSTEM_BUSY and sent again");
        }
        equal(ids.size(), n, "distinct message ids");
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        for (MessageExt m : sink.exactlyOnce("a", n)) {
            require(ids.contains(m.getMsgId()), "unknown id " + m.getMsgId());
        }
    }

    private static SendCallback callback(String body, Semaphore window, Collection<String> again,
        Collection<String> bad, Set<String> ids) {
        return new SendCallback() {
            @Override
            public void onSuccess(SendResult r) {
                if (r.getSendStatus() == SendStatus.SEND_OK) {
                    ids.add(r.getMsgId());
                } else {
                    bad.add(r.toString());
                }
                window.release();
            }

            @Override
            public void onException(Throwable e) {
                boolean busy = e instanceof MQBrokerException && ((MQBrokerException) e).getResponseCode() == 2;
                (busy ? again : bad).add(busy ? body : e.toString());
                window.release();
            }
        };
    }

    static void oneway(Env env) throws Exception {
        String topic = env.topic(4);
        for (int i = 0; i < 100; i++) {
            env.producer().sendOneway(new Message(topic, ("o" + i).getBytes()));
        }
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        sink.exactlyOnce("o", 100);
    }

    /** A batch is one request; its messages lie side by side and each has its own id, tag, keys and properties. */
    static void batch(Env env) throws Exception {
        String topic = env.topic(2);
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            Message m = new Message(topic, "tag" + i % 3, "key" + i, ("b" + i).getBytes());
            m.putUserProperty("number", "" + i);
            batch.add(m);
        }
        SendResult r = env.producer().send(batch);
        equal(r.getSendStatus(), SendStatus.SEND_OK, "send status");
        List<String> ids = Arrays.asList(r.getMsgId().split(","));
        equal(new TreeSet<>(ids).size(), 20, "distinct ids in the result");
        equal(new TreeSet<>(Arrays.asList(r.getOffsetMsgId().split(","))).size(), 20, "distinct offset ids");
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        for (MessageExt m : sink.exactlyOnce("b", 20)) {
            int i = Integer.parseInt(Sink.body(m).substring(1));
            equal(m.getMsgId(), ids.get(i), "id of inner message " + i);
            equal(m.getTags(), "tag" + i % 3, "tag of inner message " + i);
            equal(m.getKeys(), "key" + i, "key of inner message " + i);
            equal(m.getUserProperty("number"), "" + i, "property of inner message " + i);
            equal(m.getQueueId(), r.getMessageQueue().getQueueId(), "queue of inner message " + i);
            equal(m.getQueueOffset(), r.getQueueOffset() + i, "queue offset of inner message " + i);
        }
    }

    /** Sending to a topic that does not exist creates it with the number of queues that the producer asks for. */
    static void autoTopic(Env env) throws Exception {
        String topic = env.name("auto");
        env.send(new Message(topic, "x0".getBytes()));
        env.awaitQueues(topic, 4);
        env.send(new Message(topic, "x1".getBytes()));
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        sink.exactlyOnce("x", 2);

        String other = env.name("auto");
        env.producer().setDefaultTopicQueueNums(2);
        env.send(new Message(other, "y".getBytes()));
        env.awaitQueues(other, 2);
    }

    /** Keys, tag, flag, properties and bodies of many sizes, small, compressed and not compressible, are kept. */
    static void content(Env env) throws Exception {
        String topic = env.topic(1);
        Random random = new Random(7);
        List<byte[]> bodies = new ArrayList<>();
        for (int size : new int[] {1, 4095, 4096, 4097, 65536, 1 << 20}) {
            byte[] text = new byte[size];
            Arrays.fill(text, (byte) 'z');
            byte[] noise = new byte[size];
            random.nextBytes(noise);
            bodies.add(text);
            bodies.add(noise);
        }
        bodies.add(new byte[] {0, 1, 2, 0, -1, 10, 13, 0});
        Map<String, Integer> sent = new HashMap<>();
        for (int i = 0; i < bodies.size(); i++) {
            Message m = new Message(topic, "grün", "k1 k2 k" + i, bodies.get(i));
            m.setFlag(1000 + i);
            m.putUserProperty("a name with blanks", " x ");
            m.putUserProperty("unicode", "äöü 漢字 \uD83D\uDE00");
            m.putUserProperty("json", "{\"a\":[1,2,\"x\"]}");
            sent.put(env.send(m).getMsgId(), i);
        }
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        Env.until("all " + bodies.size() + " messages", () -> sink.messages().size() >= bodies.size());
        equal(sink.messages().size(), bodies.size(), "number of messages");
        for (MessageExt m : sink.messages()) {
            Integer i = sent.remove(m.getMsgId());
            require(i != null, "an unknown id or one received twice: " + m.getMsgId());
            byte[] body = bodies.get(i);
            String what = " of message " + i + " (" + body.length + " bytes)";
            require(Arrays.equals(m.getBody(), body), "body changed" + what + ", got " + m.getBody().length);
            equal(m.getTags(), "grün", "tag" + what);
            equal(m.getKeys(), "k1 k2 k" + i, "keys" + what);
            equal(m.getFlag(), 1000 + i, "flag" + what);
            equal(m.getUserProperty("a name with blanks"), " x ", "property" + what);
            equal(m.getUserProperty("unicode"), "äöü 漢字 \uD83D\uDE00", "property" + what);
            equal(m.getUserProperty("json"), "{\"a\":[1,2,\"x\"]}", "property" + what);
            boolean squeezable = body.length >= 4096 && body[0] == 'z' && body[1] == 'z';
            equal(m.getStoreSize() < body.length, squeezable, "stored smaller than the body" + what);
        }
    }

    /** A message is found again by the offset id of its send. */
    static void viewMessage(Env env) throws Exception {
        String topic = env.topic(2);
        for (int i = 0; i < 5; i++) {
            Message m = new Message(topic, "t", "key" + i, ("v" + i).getBytes());
            SendResult r = env.send(m);
            MessageExt found = env.producer().viewMessage(topic, r.getOffsetMsgId());
            require(found != null, "nothing found for " + r.getOffsetMsgId());
            equal(Sink.body(found), "v" + i, "body");
            equal(found.getKeys(), "key" + i, "keys");
            equal(found.getTopic(), topic, "topic");
            equal(found.getQueueOffset(), r.getQueueOffset(), "queue offset");
            equal(found.getQueueId(), r.getMessageQueue().getQueueId(), "queue id");
        }
    }

    /** A topic with dedup.key stores a message once, however often it is sent: RocketMQ has no such thing. */
    static void repeated(Env env) throws Exception {
        String topic = env.name("t");
        if (!Versions.createTopic(env.producer(), env.topic(1), topic, 4, Map.of("+dedup.key", "KEYS"))) {
            env.note("this client cannot give a topic attributes");
            return;
        }
        env.awaitQueues(topic, 4);
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        for (int i = 0; i < 20; i++) {
            SendResult first = env.send(new Message(topic, "tag", "key" + i, ("d" + i).getBytes()));
            for (int n = 0; n < 3; n++) {
                SendResult again = env.send(new Message(topic, "tag", "key" + i, ("d" + i).getBytes()));
                equal(again.getOffsetMsgId(), first.getOffsetMsgId(), "id of a repeated send");
                equal(again.getQueueOffset(), first.getQueueOffset(), "queue offset of a repeated send");
                equal(again.getMessageQueue(), first.getMessageQueue(), "queue of a repeated send");
            }
        }
        sink.exactlyOnce("d", 20);
    }
}
