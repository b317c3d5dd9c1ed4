package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingException;

/** A topic whose number of queues rmqctl topic scale changes under clients at work. */
final class ScaleChecks {
    /** Clients ask for routes so often: rmqctl is told to wait for longer than that. */
    private static final int ROUTE_MS = 1000;

    private ScaleChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("topic_scale", ScaleChecks::scale);
    }

    /** Sends all the time, each message once, and knows what was acknowledged. */
    private static final class Sender implements Runnable {
        private final DefaultMQProducer producer;
        private final String topic;
        private final Set<String> acknowledged = Collections.synchronizedSet(new HashSet<>());
        private final List<String> failed = Collections.synchronizedList(new ArrayList<>());
        /** That messages went to, since awaitQueues() was called. */
        private final Set<Integer> queues = Collections.synchronizedSet(new TreeSet<>());
        private volatile boolean ended;

        Sender(Env env, String topic) throws MQClientException {
            this.topic = topic;
            producer = new DefaultMQProducer(env.name("p"));
            producer.setNamesrvAddr(env.namesrv);
            producer.setInstanceName(env.name("i"));
            producer.setSendMsgTimeout(10000);
            producer.setRetryTimesWhenSendFailed(0);
            producer.setPollNameServerInterval(ROUTE_MS);
            producer.start();
            env.onClose(producer::shutdown);
        }

        @Override
        public void run() {
            for (int i = 0; !ended; i++) {
                String body = "m" + i;
                try {
                    SendResult r = producer.send(new Message(topic, body.getBytes()));
                    queues.add(r.getMessageQueue().getQueueId());
                    if (r.getSendStatus() == SendStatus.SEND_OK) {
                        acknowledged.add(body);
                    } else {
                        failed.add(r.toString());
                    }
                    Thread.sleep(2);
                } catch (MQClientException | RemotingException | MQBrokerException e) {
                    failed.add(e.toString());
                } catch (InterruptedException e) {
                    return;
                }
            }
        }

        void awaitQueues(int n) throws Exception {
            queues.clear();
            Env.until("messages to " + n + " queues", () -> queues.equals(ids(n)));
        }
    }

    private static Set<Integer> ids(int n) {
        Set<Integer> all = new TreeSet<>();
        for (int i = 0; i < n; i++) {
            all.add(i);
        }
        return all;
    }

    private static DefaultMQPushConsumer consumer(Env env, String topic, String group, Sink sink) throws Exception {
        DefaultMQPushConsumer c = env.newPush(group);
        c.setPollNameServerInterval(ROUTE_MS);
        return env.start(c, topic, "*", sink);
    }

    private static void awaitCame(Sink sink, int queue, int after) throws Exception {
        Env.until("messages of queue " + queue, () -> {
            List<MessageExt> all = sink.messages();
            return all.subList(after, all.size()).stream().anyMatch(m -> m.getQueueId() == queue);
        });
    }

    /**
     * From 2 queues to 6, back to 2, and to 3, while messages are sent: no send is refused, one consumer gets each
     * message once, two that share the queues get each at least once.
     */
    static void scale(Env env) throws Exception {
        String topic = env.topic(2);
        String alone = env.group();
        String shared = env.group();
        Sink one = new Sink();
        Sink two = new Sink();
        DefaultMQPushConsumer c = consumer(env, topic, alone, one);
        DefaultMQPushConsumer a = consumer(env, topic, shared, two);
        DefaultMQPushConsumer b = consumer(env, topic, shared, two);
        env.awaitShared(topic, 2, c);
        env.awaitShared(topic, 2, a, b);
        Sender sender = new Sender(env, topic);
        Thread thread = new Thread(sender);
        thread.start();
        env.onClose(() -> sender.ended = true);
        sender.awaitQueues(2);
        Env.rmqctl("topic scale " + topic + " --queues 6");
        sender.awaitQueues(6);
        for (Sink sink : List.of(one, two)) {
            for (int queue = 2; queue < 6; queue++) {
                awaitCame(sink, queue, 0);
            }
        }
        Env.rmqctl("topic scale " + topic + " --queues 2 --settle " + 8 * ROUTE_MS + "ms");
        sender.awaitQueues(2);
        env.awaitShared(topic, 2, c);
        env.awaitShared(topic, 2, a, b);
        int before = one.messages().size();
        Env.rmqctl("topic scale " + topic + " --queues 3");
        sender.awaitQueues(3);
        awaitCame(one, 2, before);
        sender.ended = true;
        thread.join();
        equal(sender.failed, List.of(), "sends that failed");
        one.awaitAll(sender.acknowledged);
        two.awaitAll(sender.acknowledged);
        one.exactlyOnce(sender.acknowledged);
        for (String group : List.of(alone, shared)) {
            env.awaitAllCommitted(group, topic);
        }
        int more = two.messages().size() - sender.acknowledged.size();
        env.note(sender.acknowledged.size() + " messages, " + more + " came again to the two that share");
        require(more < sender.acknowledged.size() / 2, more + " messages came again to the two that share");
    }
}
