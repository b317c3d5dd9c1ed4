package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What else a message can be: a request and its reply, a trace of others, compressed, in light queues. */
final class BodyChecks {
    private static final String TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC";

    private BodyChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("request_reply", BodyChecks::requestReply);
        all.put("request_timeout", BodyChecks::requestTimeout);
        all.put("trace", BodyChecks::trace);
        all.put("compressed", BodyChecks::compressed);
    }

    /** Those that need a broker of their own, with light queues. */
    static void addAlone(Map<String, Check> all) {
        all.put("lmq", BodyChecks::lightQueues);
        all.put("compaction", BodyChecks::compaction);
    }

    /** Replies to each message with its body in capitals, by a client of its own. */
    private static void startReplier(Env env, String topic) throws Exception {
        DefaultMQProducer replies = new DefaultMQProducer(env.name("p"));
        replies.setNamesrvAddr(env.namesrv);
        replies.setInstanceName(env.name("i"));
        replies.setSendMsgTimeout(10000);
        replies.start();
        env.onClose(replies::shutdown);
        env.push(env.group(), topic, "*", (MessageListenerConcurrently) (msgs, context) -> {
            for (MessageExt m : msgs) {
                try {
                    byte[] body = Sink.body(m).toUpperCase().getBytes();
                    replies.send(MessageUtil.createReplyMessage(m, body), 10000);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();     // the check has all replies and is over
                } catch (Exception e) {
                    env.note("a reply failed: " + e);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
    }

    /** A request waits for the reply to it, also many at a time, long bodies, and by callback. */
    static void requestReply(Env env) throws Exception {
        String topic = env.topic(2);
        startReplier(env, topic);
        Message first = env.producer().request(new Message(topic, "first".getBytes()), 60000);
        equal(new String(first.getBody()), "FIRST", "the reply");
        char[] text = new char[50000];
        Arrays.fill(text, 'x');
        Message large = env.producer().request(new Message(topic, new String(text).getBytes()), 60000);
        equal(new String(large.getBody()), new String(text).toUpperCase(), "the reply to a compressed body");
        List<CompletableFuture<String>> all = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            CompletableFuture<String> f = new CompletableFuture<>();
            all.add(f);
            env.producer().request(new Message(topic, ("n" + i).getBytes()), new RequestCallback() {
                @Override
                public void onSuccess(Message m) {
                    f.complete(new String(m.getBody()));
                }

                @Override
                public void onException(Throwable e) {
                    f.completeExceptionally(e);
                }
            }, 60000);
        }
        for (int i = 0; i < 20; i++) {
            equal(all.get(i).get(Env.DEADLINE_S, TimeUnit.SECONDS), "N" + i, "the reply to request " + i);
        }
    }

    /** Nobody replies: the request ends by its time. */
    static void requestTimeout(Env env) throws Exception {
        String topic = env.topic(1);
        try {
            env.producer().request(new Message(topic, "x".getBytes()), 3000);
        } catch (RequestTimeoutException e) {
            return;
        }
        require(false, "a request that nobody replied to was answered");
    }

    /** Producer and consumer tell of a message in the topic for traces. */
    static void trace(Env env) throws Exception {
        String topic = env.topic(1);
        DefaultMQProducer p = new DefaultMQProducer(env.name("p"), true, null);
        p.setNamesrvAddr(env.namesrv);
        p.setInstanceName(env.name("i"));
        p.setSendMsgTimeout(10000);
        p.start();
        env.onClose(p::shutdown);
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(env.group(), null, new AllocateMessageQueueAveragely(),
            true, null);
        c.setNamesrvAddr(env.namesrv);
        c.setInstanceName(env.name("i"));
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        env.onClose(c::shutdown);
        Sink sink = new Sink();
        env.start(c, topic, "*", sink);
        SendResult sent = p.send(new Message(topic, "tag", "key", "traced0".getBytes()));
        sink.exactlyOnce("traced", 1);
        Set<String> told = ConcurrentHashMap.newKeySet();
        Env.until("a route of " + TRACE_TOPIC, () -> {
            try {
                return !env.producer().fetchPublishMessageQueues(TRACE_TOPIC).isEmpty();
            } catch (Exception e) {
                return false;
            }
        });
        env.push(env.group(), TRACE_TOPIC, "*", (MessageListenerConcurrently) (msgs, context) -> {
            for (MessageExt m : msgs) {
                for (TraceContext t : TraceDataEncoder.decoderFromTraceDataString(Sink.body(m))) {
                    t.getTraceBeans().stream().filter(b -> sent.getMsgId().equals(b.getMsgId()))
                        .forEach(b -> told.add(t.getTraceType().name()));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        Env.until("traces of the send and the consumption, there are " + told,
            () -> told.containsAll(Arrays.asList("Pub", "SubBefore", "SubAfter")));
    }

    /** Bodies are stored as they came, by whatever they were compressed, and told as such. */
    static void compressed(Env env) throws Exception {
        String topic = env.topic(1);
        byte[] body = new byte[100000];
        Arrays.fill(body, (byte) 'z');
        List<String> types = Versions.compressTypes();
        for (String type : types) {
            DefaultMQProducer p = new DefaultMQProducer(env.name("p"));
            p.setNamesrvAddr(env.namesrv);
            p.setInstanceName(env.name("i"));
            p.setSendMsgTimeout(10000);
            Versions.setCompressType(p, type);
            p.start();
            env.onClose(p::shutdown);
            p.send(new Message(topic, type, body));
        }
        if (types.isEmpty()) {
            env.note("this client compresses with zlib alone");
            return;
        }
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        Env.until("all " + types.size() + " messages", () -> sink.messages().size() >= types.size());
        for (MessageExt m : sink.messages()) {
            require(types.contains(m.getTags()), "a tag that was not sent: " + m.getTags());
            require(Arrays.equals(m.getBody(), body), "the body changed by " + m.getTags());
            require(m.getStoreSize() < 5000, "stored with " + m.getStoreSize() + " bytes: not compressed");
        }
    }

    private static final String LIGHT = "%LMQ%";

    private static List<String> pullAll(DefaultMQPullConsumer c, MessageQueue mq, String property) throws Exception {
        List<String> got = new ArrayList<>();
        long offset = 0;
        while (true) {
            PullResult r = c.pull(mq, "*", offset, 32);
            if (r.getPullStatus() != PullStatus.FOUND) {
                return got;
            }
            for (MessageExt m : r.getMsgFoundList()) {
                got.add(Sink.body(m) + "@" + m.getProperty(property));
            }
            offset = r.getNextBeginOffset();
        }
    }

    private static void send(Env env, String topic, String body, String... queues) throws Exception {
        Message m = new Message(topic, body.getBytes());
        m.putUserProperty("INNER_MULTI_DISPATCH", String.join(",", queues));
        env.send(m);
    }

    /** A message comes into the light queues that it names, and stays there over a restart. */
    static void lightQueues(Env env) throws Exception {
        String topic = env.topic(1);
        String a = LIGHT + env.name("a");
        String b = LIGHT + env.name("b");
        send(env, topic, "m0", a, b);
        send(env, topic, "m1", b);
        send(env, topic, "m2", b, a);
        DefaultMQPullConsumer c = PullChecks.pullConsumer(env, env.group());
        c.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory()
            .updateTopicRouteInfoFromNameServer(topic);
        String broker = env.queues(topic).get(0).getBrokerName();
        MessageQueue inA = new MessageQueue(a, broker, 0);
        MessageQueue inB = new MessageQueue(b, broker, 0);
        String offsets = "INNER_MULTI_QUEUE_OFFSET";
        Env.until("two messages in " + a, () -> c.maxOffset(inA) == 2);
        equal(c.minOffset(inA), 0L, "min offset");
        equal(pullAll(c, inA, offsets), Arrays.asList("m0@0,0", "m2@2,1"), "messages of " + a);
        equal(pullAll(c, inB, offsets), Arrays.asList("m0@0,0", "m1@1", "m2@2,1"), "messages of " + b);
        env.restartBroker();
        equal(pullAll(c, inB, offsets), Arrays.asList("m0@0,0", "m1@1", "m2@2,1"), "messages after a restart");
        send(env, topic, "m3", a);
        Env.until("three messages in " + a, () -> c.maxOffset(inA) == 3);
        equal(pullAll(c, inA, offsets), Arrays.asList("m0@0,0", "m2@2,1", "m3@2"), "messages after another send");
        List<String> inTopic = pullAll(c, env.queues(topic).get(0), "x");
        Collections.sort(inTopic);
        equal(inTopic.size(), 4, "messages of the topic");
    }

    private static final int KEYS = 20;

    /** Queue offset to body of what a consumer sees from offset 0 on. */
    private static TreeMap<Long, String> readFromStart(DefaultMQPullConsumer c, MessageQueue mq) throws Exception {
        TreeMap<Long, String> seen = new TreeMap<>();
        long end = c.maxOffset(mq);
        for (long offset = 0; offset < end;) {
            PullResult r = c.pull(mq, "*", offset, 32);
            equal(r.getPullStatus(), PullStatus.FOUND, "status at offset " + offset);
            for (MessageExt m : r.getMsgFoundList()) {
                require(seen.isEmpty() || m.getQueueOffset() > seen.lastKey(), "offsets do not rise");
                equal(m.getKeys(), "key" + m.getQueueOffset() % KEYS, "key at offset " + m.getQueueOffset());
                seen.put(m.getQueueOffset(), Sink.body(m).trim());
            }
            offset = r.getNextBeginOffset();
        }
        return seen;
    }

    private static void requireLatest(TreeMap<Long, String> seen, int sent) throws Failure {
        for (Map.Entry<Long, String> e : seen.entrySet()) {
            equal(e.getValue(), "c" + e.getKey(), "body at its offset");
        }
        for (long n = sent - KEYS; n < sent; n++) {
            require(seen.containsKey(n), "the latest of its key is lost: " + n + " of " + seen.keySet());
        }
    }

    /** Of each key the latest message stays, at its offset; one without a key is refused. */
    static void compaction(Env env) throws Exception {
        String topic = env.name("t");
        if (!Versions.createTopic(env.producer(), env.topic(1), topic, 1, Map.of("+cleanup.policy", "COMPACTION"))) {
            env.note("this client cannot give a topic attributes");
            return;
        }
        MessageQueue mq = env.awaitQueues(topic, 1).get(0);
        try {
            env.producer().send(new Message(topic, "no key".getBytes()));
            require(false, "a message without a key was taken");
        } catch (MQBrokerException e) {
            equal(e.getResponseCode(), 13, "code of a message without a key");
        }
        char[] blanks = new char[100];
        Arrays.fill(blanks, ' ');
        for (int i = 0; i < 400; i++) {
            SendResult r = env.send(new Message(topic, "tag", "key" + i % KEYS, ("c" + i + new String(blanks)).getBytes()));
            equal(r.getQueueOffset(), (long) i, "queue offset");
        }
        DefaultMQPullConsumer c = PullChecks.pullConsumer(env, env.group());
        // The last file of a queue, which has 99 messages at most, is not compacted.
        Env.until("a compaction", () -> readFromStart(c, mq).size() < 100 + 2 * KEYS);
        requireLatest(readFromStart(c, mq), 400);
        equal(c.maxOffset(mq), 400L, "max offset");
        env.restartBroker();
        requireLatest(readFromStart(c, mq), 400);
        Sink sink = new Sink();
        DefaultMQPushConsumer push = env.newPush(env.group());
        push.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        push.subscribe(topic, "*");
        push.registerMessageListener(sink);
        push.start();
        env.onClose(push::shutdown);
        Env.until("a push consumer with the latest message", () -> sink.messages().stream()
            .anyMatch(m -> Sink.body(m).trim().equals("c399")));
    }
}
