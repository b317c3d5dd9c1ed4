package rmqd.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.MessageListener;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * What a check works with: names of its own, clients that are closed after it, and waiting. Each client gets an
 * instance name and with it a connection of its own, as if it were another process. Deadlines are generous, they only
 * end a hang; no check asserts a speed.
 */
final class Env {
    static final int DEADLINE_S = 90;
    /** The clients give up after 3 s, which a busy machine may need. */
    static final int API_TIMEOUT_MS = 20000;
    private static final AtomicInteger NEXT = new AtomicInteger();
    private static final BufferedReader RUNNER = new BufferedReader(new InputStreamReader(System.in));

    final String namesrv;
    final List<String> notes = new ArrayList<>();
    private final String check;
    private final String random = UUID.randomUUID().toString().substring(0, 8);
    private final Deque<Runnable> toClose = new ArrayDeque<>();
    private DefaultMQProducer producer;

    Env(String namesrv, String check) {
        this.namesrv = namesrv;
        this.check = check;
    }

    void close() {
        while (!toClose.isEmpty()) {
            toClose.pop().run();
        }
    }

    void onClose(Runnable r) {
        toClose.push(r);
    }

    void note(String text) {
        notes.add(text);
    }

    /** A name that nobody else uses: of a topic, a group, or an instance. */
    String name(String kind) {
        return kind + "_" + check + "_" + random + "_" + NEXT.incrementAndGet();
    }

    String group() {
        return name("g");
    }

    /** The producer of the check, started at the first call. */
    DefaultMQProducer producer() throws MQClientException {
        if (producer == null) {
            DefaultMQProducer p = new DefaultMQProducer(name("p"));
            p.setNamesrvAddr(namesrv);
            p.setInstanceName(name("i"));
            p.setSendMsgTimeout(10000);
            p.setMqClientApiTimeout(API_TIMEOUT_MS);
            p.start();
            onClose(p::shutdown);
            producer = p;
        }
        return producer;
    }

    /** Creates a topic through the client's own admin call and waits until the name server has its route. */
    String topic(int queues) throws Exception {
        String topic = name("t");
        createTopic(topic, queues);
        return topic;
    }

    void createTopic(String topic, int queues) throws Exception {
        Versions.createTopic(producer(), topic, queues);
        awaitQueues(topic, queues);
    }

    /** Waits until the route of the topic has exactly this number of queues to write to. */
    List<MessageQueue> awaitQueues(String topic, int queues) throws Exception {
        until("a route of " + topic + " with " + queues + " queues", () -> {
            try {
                return producer().fetchPublishMessageQueues(topic).size() == queues;
            } catch (MQClientException e) {
                return false;
            }
        });
        return queues(topic);
    }

    /** The producer learns the route anew now, not when its time comes. */
    void refreshRoute(String topic) throws Exception {
        producer().getDefaultMQProducerImpl().getMqClientFactory().updateTopicRouteInfoFromNameServer(topic);
    }

    /** Has the runner kill the broker and start it again; returns when it serves. For a broker of one's own. */
    void restartBroker() throws Exception {
        Failure.equal(wish("restart"), "restarted", "the answer to a wish for a restart");
    }

    /** Has the runner run rmqctl at this name server; returns when that ends, which must be well. */
    static void rmqctl(String arguments) throws Exception {
        String answer = wish("rmqctl " + arguments);
        Failure.require(answer != null && answer.startsWith("0 "), "rmqctl " + arguments + ": " + answer);
    }

    private static String wish(String text) throws Exception {
        System.out.println("! " + text);
        System.out.flush();
        return RUNNER.readLine();
    }

    List<MessageQueue> queues(String topic) throws Exception {
        List<MessageQueue> l = new ArrayList<>(producer().fetchPublishMessageQueues(topic));
        Collections.sort(l);
        return l;
    }

    SendResult send(Message m) throws Exception {
        SendResult r = producer().send(m);
        Failure.equal(r.getSendStatus(), SendStatus.SEND_OK, "send status");
        return r;
    }

    /** Sends bodies prefix0, prefix1, ... round the queues. */
    void sendMany(String topic, String prefix, int n) throws Exception {
        List<MessageQueue> mqs = queues(topic);
        for (int i = 0; i < n; i++) {
            Message m = new Message(topic, (prefix + i).getBytes("UTF-8"));
            SendResult r = producer().send(m, mqs.get(i % mqs.size()));
            Failure.equal(r.getSendStatus(), SendStatus.SEND_OK, "send status");
        }
    }

    /** A push consumer that is not started: from the first offset, commits each second. */
    DefaultMQPushConsumer newPush(String group) {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setInstanceName(name("i"));
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setPersistConsumerOffsetInterval(1000);
        c.setMqClientApiTimeout(API_TIMEOUT_MS);
        c.setConsumeThreadMin(4);
        c.setConsumeThreadMax(4);
        onClose(c::shutdown);
        return c;
    }

    DefaultMQPushConsumer push(String group, String topic, String tags, MessageListener listener) throws Exception {
        return start(newPush(group), topic, tags, listener);
    }

    DefaultMQPushConsumer start(DefaultMQPushConsumer c, String topic, String tags, MessageListener listener)
        throws Exception {
        c.subscribe(topic, tags);
        if (listener instanceof MessageListenerOrderly) {
            c.registerMessageListener((MessageListenerOrderly) listener);
        } else {
            c.registerMessageListener((MessageListenerConcurrently) listener);
        }
        c.start();
        return c;
    }

    /** The queues of the topic that this consumer works on now. */
    static Set<MessageQueue> assigned(DefaultMQPushConsumer c, String topic) {
        Set<MessageQueue> s = new HashSet<>(
            c.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet());
        s.removeIf(q -> !q.getTopic().equals(topic));
        return s;
    }

    /** Waits until the consumers share all queues of the topic, nobody idle and no queue twice. */
    void awaitShared(String topic, int queues, DefaultMQPushConsumer... consumers) throws Exception {
        until(consumers.length + " consumers share " + queues + " queues", () -> {
            Set<MessageQueue> all = new HashSet<>();
            int total = 0;
            for (DefaultMQPushConsumer c : consumers) {
                Set<MessageQueue> mine = assigned(c, topic);
                if (mine.isEmpty()) {
                    return false;
                }
                total += mine.size();
                all.addAll(mine);
            }
            return total == queues && all.size() == queues;
        });
    }

    /** The offset that the broker keeps for the group, below 0 when none; asked past any cache of a consumer. */
    long committed(String group, MessageQueue mq) throws Exception {
        return new RemoteBrokerOffsetStore(producer().getDefaultMQProducerImpl().getMqClientFactory(), group)
            .readOffset(mq, ReadOffsetType.READ_FROM_STORE);
    }

    /** Waits until the broker knows that the group consumed everything in the topic. */
    void awaitAllCommitted(String group, String topic) throws Exception {
        List<MessageQueue> mqs = queues(topic);
        until("offsets of " + group + " at the end of each queue", () -> {
            for (MessageQueue mq : mqs) {
                long max = producer().maxOffset(mq);
                if (max > 0 && committed(group, mq) != max) {
                    return false;
                }
            }
            return true;
        });
    }

    /** The client ids that the broker lists as members of the group. */
    List<String> members(String topic, String group) throws Exception {
        List<String> ids = producer().getDefaultMQProducerImpl().getMqClientFactory()
            .findConsumerIdList(topic, group);
        return ids == null ? Collections.emptyList() : ids;
    }

    static void until(String what, Callable<Boolean> condition) throws Exception {
        until(what, DEADLINE_S, condition);
    }

    static void until(String what, int seconds, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + seconds * 1000000000L;
        while (!condition.call()) {
            Failure.require(System.nanoTime() < end, "not within " + seconds + " s: " + what);
            Thread.sleep(20);
        }
    }
}
