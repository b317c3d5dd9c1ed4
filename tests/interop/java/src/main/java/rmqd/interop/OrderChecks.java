package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Order that outlives owners and brokers; locks; global order; what orderly consumers give up on. */
final class OrderChecks {
    /** A lock that nobody renews is free after so long; a client goes on for 30 s after its last renewal. */
    private static final int LOCK_LIVES_S = 60;

    private OrderChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("order_locks", OrderChecks::locks);
        all.put("order_rebalance", OrderChecks::rebalance);
        all.put("order_owner_dies", OrderChecks::ownerDies);
        all.put("order_gives_up", OrderChecks::givesUp);
    }

    /** Those that need a broker of their own, or a name server with orderMessageEnable. */
    static void addAlone(Map<String, Check> all) {
        all.put("order_global", OrderChecks::global);
        all.put("order_over_restart", OrderChecks::overRestart);
        all.put("order_owners_over_restart", OrderChecks::ownersOverRestart);
    }

    /** Bodies are numbers; each queue's come in order, with none left out. Some may come again after a step back. */
    static final class Numbers {
        final Map<Integer, List<Integer>> perQueue = new HashMap<>();

        synchronized void add(int queue, int number) {
            perQueue.computeIfAbsent(queue, k -> new ArrayList<>()).add(number);
        }

        MessageListenerOrderly listener() {
            return (msgs, context) -> {
                for (MessageExt m : msgs) {
                    add(m.getQueueId(), Integer.parseInt(Sink.body(m)));
                }
                return ConsumeOrderlyStatus.SUCCESS;
            };
        }

        synchronized int distinct() {
            return perQueue.values().stream().mapToInt(l -> new HashSet<>(l).size()).sum();
        }

        synchronized int total() {
            return perQueue.values().stream().mapToInt(List::size).sum();
        }

        synchronized void assertOrder() throws Failure {
            for (Map.Entry<Integer, List<Integer>> e : perQueue.entrySet()) {
                int before = -1;
                for (int n : e.getValue()) {
                    require(n <= before + 1, "queue " + e.getKey() + ": " + n + " came after " + before + " in "
                        + e.getValue());
                    before = n;
                }
            }
        }
    }

    /** Sends the numbers from..to-1 to each queue, each until it is acknowledged. */
    private static void send(Env env, String topic, int queues, int from, int to) throws Exception {
        for (int n = from; n < to; n++) {
            for (int q = 0; q < queues; q++) {
                Message m = new Message(topic, ("" + n).getBytes());
                int queue = q;
                Env.until("number " + n + " is acknowledged", () -> {
                    try {
                        env.producer().send(m, (mqs, x, arg) -> mqs.get(queue), null);
                        return true;
                    } catch (Exception e) {
                        return false;
                    }
                });
            }
        }
    }

    /** LOCK_BATCH_MQ as a client of that id; the queues that it owns then. */
    private static Set<Integer> lock(Env env, String call, String group, String client, List<MessageQueue> queues)
        throws Exception {
        MQClientInstance factory = env.producer().getDefaultMQProducerImpl().getMqClientFactory();
        MQClientAPIImpl api = factory.getMQClientAPIImpl();
        env.refreshRoute(queues.get(0).getTopic());
        String address = factory.findBrokerAddressInPublish(queues.get(0).getBrokerName());
        for (Method m : MQClientAPIImpl.class.getMethods()) {
            if (!m.getName().equals(call)) {
                continue;
            }
            Object body = m.getParameterTypes()[1].getDeclaredConstructor().newInstance();
            body.getClass().getMethod("setConsumerGroup", String.class).invoke(body, group);
            body.getClass().getMethod("setClientId", String.class).invoke(body, client);
            body.getClass().getMethod("setMqSet", Set.class).invoke(body, new HashSet<>(queues));
            Object got = call.startsWith("lock") ? m.invoke(api, address, body, (long) Env.API_TIMEOUT_MS)
                : m.invoke(api, address, body, (long) Env.API_TIMEOUT_MS, false);
            Set<Integer> ids = new HashSet<>();
            if (got != null) {
                ((Collection<?>) got).forEach(q -> ids.add(((MessageQueue) q).getQueueId()));
            }
            return ids;
        }
        throw new NoSuchMethodException(call);
    }

    /** One owner a queue: refused to others until it is given back, or not renewed for 60 s. */
    static void locks(Env env) throws Exception {
        String topic = env.topic(3);
        String group = env.group();
        List<MessageQueue> all = env.queues(topic);
        equal(lock(env, "lockBatchMQ", group, "a", all.subList(0, 2)), Set.of(0, 1), "locks of the first");
        equal(lock(env, "lockBatchMQ", group, "b", all), Set.of(2), "locks of the second");
        equal(lock(env, "lockBatchMQ", env.group(), "b", all), Set.of(0, 1, 2), "locks of another group");
        lock(env, "unlockBatchMQ", group, "b", all);
        equal(lock(env, "lockBatchMQ", group, "b", all), Set.of(2), "locks after giving back those of another");
        lock(env, "unlockBatchMQ", group, "a", all.subList(0, 1));
        equal(lock(env, "lockBatchMQ", group, "b", all), Set.of(0, 2), "locks after one was given back");
        Thread.sleep(LOCK_LIVES_S * 2 / 3 * 1000);
        equal(lock(env, "lockBatchMQ", group, "b", all.subList(0, 1)), Set.of(0), "the owner renews one");
        Thread.sleep(LOCK_LIVES_S / 2 * 1000);
        equal(lock(env, "lockBatchMQ", group, "c", all), Set.of(1, 2), "locks that nobody renewed for 70 s");
    }

    /** Consumers come and go while numbers flow: those of each queue come in order, and none is left out. */
    static void rebalance(Env env) throws Exception {
        String topic = env.topic(6);
        String group = env.group();
        Numbers numbers = new Numbers();
        AtomicInteger sent = new AtomicInteger();
        AtomicBoolean enough = new AtomicBoolean();
        AtomicReference<Exception> failed = new AtomicReference<>();
        Thread sending = new Thread(() -> {
            try {
                while (!enough.get()) {
                    send(env, topic, 6, sent.get(), sent.get() + 1);
                    sent.incrementAndGet();
                    Thread.sleep(20);
                }
            } catch (Exception e) {
                failed.set(e);
            }
        });
        DefaultMQPushConsumer a = env.push(group, topic, "*", numbers.listener());
        env.awaitShared(topic, 6, a);
        sending.start();
        try {
            DefaultMQPushConsumer b = env.push(group, topic, "*", numbers.listener());
            env.awaitShared(topic, 6, a, b);
            DefaultMQPushConsumer c = env.push(group, topic, "*", numbers.listener());
            env.awaitShared(topic, 6, a, b, c);
            a.shutdown();
            env.awaitShared(topic, 6, b, c);
            b.shutdown();
            env.awaitShared(topic, 6, c);
        } finally {
            enough.set(true);
            sending.join();
        }
        if (failed.get() != null) {
            throw failed.get();
        }
        int all = 6 * sent.get();
        Env.until("all " + all + " numbers", 150, () -> numbers.distinct() == all);
        numbers.assertOrder();
        env.note((numbers.total() - all) + " of " + all + " came again");
    }

    private static Process orderlyProcess(Env env, String topic, String group) throws Exception {
        List<String> argv = new ArrayList<>();
        argv.add(ProcessHandle.current().info().command().orElse("java"));
        argv.addAll(Arrays.asList("-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path")));
        System.getProperties().forEach((k, v) -> {
            if (k.toString().startsWith("rocketmq.") || k.toString().startsWith("com.rocketmq.")
                || k.equals("user.home")) {
                argv.add(1, "-D" + k + "=" + v);
            }
        });
        argv.addAll(Arrays.asList(Main.class.getName(), "--orderly", env.namesrv, topic, group));
        Process p = new ProcessBuilder(argv).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        env.onClose(p::destroyForcibly);
        return p;
    }

    /** A process that owns the only queue is killed without a word: another takes over when its lock has run out, in order. */
    static void ownerDies(Env env) throws Exception {
        String topic = env.topic(1);
        String group = env.group();
        Process owner = orderlyProcess(env, topic, group);
        BufferedReader out = new BufferedReader(new InputStreamReader(owner.getInputStream()));
        send(env, topic, 1, 0, 10);
        Numbers numbers = new Numbers();
        for (int i = 0; i < 10; i++) {
            String line = out.readLine();
            require(line != null, "the consuming process ended");
            numbers.add(0, Integer.parseInt(line));
        }
        long killed = System.nanoTime();
        owner.destroyForcibly().waitFor();
        send(env, topic, 1, 10, 30);
        DefaultMQPushConsumer heir = env.push(group, topic, "*", numbers.listener());
        Env.until("all 30 numbers", 150, () -> numbers.distinct() == 30);
        long seconds = (System.nanoTime() - killed) / 1000000000;
        numbers.assertOrder();
        env.note("taken over and consumed " + seconds + " s after the owner died, "
            + (numbers.total() - 30) + " came again");
        require(seconds >= LOCK_LIVES_S / 2, "the lock of the dead owner was given away after " + seconds
            + " s, when it could still have been at work");
        require(heir.getDefaultMQPushConsumerImpl() != null, "a consumer");
    }

    /** The order configuration of the name server says which queues an order topic has; one makes a global order. */
    static void global(Env env) throws Exception {
        String topic = env.topic(4);
        String broker = env.queues(topic).get(0).getBrokerName();
        MQClientInstance factory = env.producer().getDefaultMQProducerImpl().getMqClientFactory();
        factory.getMQClientAPIImpl().putKVConfigValue("ORDER_TOPIC_CONFIG", topic, broker + ":1",
            Env.API_TIMEOUT_MS);
        List<MessageQueue> queues = env.awaitQueues(topic, 1);
        equal(queues.get(0).getQueueId(), 0, "the queue of the order topic");
        env.refreshRoute(topic);
        Numbers numbers = new Numbers();
        env.push(env.group(), topic, "*", numbers.listener());
        env.push(env.group(), topic, "*", new Numbers().listener());
        for (int i = 0; i < 40; i++) {
            SendResult r = env.send(new Message(topic, ("" + i).getBytes()));
            equal(r.getMessageQueue().getQueueId(), 0, "queue of a send that names none");
        }
        Env.until("all 40", () -> numbers.distinct() == 40);
        numbers.assertOrder();
    }

    /** What fails again and again holds its queue until its times are over, then is a dead letter, and the next comes. */
    static void givesUp(Env env) throws Exception {
        String topic = env.topic(1);
        String group = env.group();
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer c = env.newPush(group);
        c.setSuspendCurrentQueueTimeMillis(100);
        c.setMaxReconsumeTimes(2);
        env.start(c, topic, "*", (MessageListenerOrderly) (msgs, context) -> {
            got.add(Sink.body(msgs.get(0)) + "." + msgs.get(0).getReconsumeTimes());
            return Sink.body(msgs.get(0)).equals("n1") ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
                : ConsumeOrderlyStatus.SUCCESS;
        });
        env.sendMany(topic, "n", 3);
        Env.until("n2", () -> got.contains("n2.0"));
        equal(got.toString(), "[n0.0, n1.0, n1.1, n1.2, n2.0]", "calls");
        RetryChecks.DeadLetters dead = new RetryChecks.DeadLetters(env, group);
        dead.await(1);
        MessageExt m = dead.messages().get(0);
        equal(Sink.body(m), "n1", "the dead letter");
        equal(m.getProperty("RETRY_TOPIC"), topic, "where it was from");
        require(m.getProperty("ORIGIN_MESSAGE_ID") != null, "its first id");
    }

    /** Numbers per queue, while the broker is killed and started again. */
    static void overRestart(Env env) throws Exception {
        String topic = env.topic(4);
        String group = env.group();
        Numbers numbers = new Numbers();
        DefaultMQPushConsumer a = env.push(group, topic, "*", numbers.listener());
        DefaultMQPushConsumer b = env.push(group, topic, "*", numbers.listener());
        env.awaitShared(topic, 4, a, b);
        send(env, topic, 4, 0, 20);
        env.restartBroker();
        send(env, topic, 4, 20, 40);
        Env.until("all 160", 150, () -> numbers.distinct() == 160);
        numbers.assertOrder();
        env.note((numbers.total() - 160) + " of 160 came again");
    }

    /** The owner of a queue may be at work while the broker is away: nobody else gets its queue when it is back. */
    static void ownersOverRestart(Env env) throws Exception {
        String topic = env.topic(2);
        String group = env.group();
        List<MessageQueue> all = env.queues(topic);
        String a = member(env, topic, group);
        String b = member(env, topic, group);
        Env.until("two members", () -> env.members(topic, group).size() == 2);
        equal(lock(env, "lockBatchMQ", group, a, all.subList(0, 1)), Set.of(0), "locks of the first");
        equal(lock(env, "lockBatchMQ", group, b, all), Set.of(1), "locks of the second");
        env.restartBroker();
        Env.until("the broker is found again", () -> {
            try {
                return env.queues(topic).size() == 2 && env.producer().maxOffset(all.get(0)) == 0;
            } catch (Exception e) {
                return false;
            }
        });
        equal(lock(env, "lockBatchMQ", group, b, all), Set.of(1), "locks of the second after the restart");
        equal(lock(env, "lockBatchMQ", group, a, all), Set.of(0), "locks of the first after the restart");
    }

    /** The client id of a consumer of the group that asks for no locks itself. */
    private static String member(Env env, String topic, String group) throws Exception {
        return env.push(group, topic, "*", new Sink()).getDefaultMQPushConsumerImpl().getmQClientFactory()
            .getClientId();
    }
}
