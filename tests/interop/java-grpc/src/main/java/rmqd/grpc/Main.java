package rmqd.grpc;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/**
 * The gRPC client against a proxy: {@code Main ENDPOINT PREFIX [CHECK]...}. The topic of a check is PREFIX_CHECK, its
 * group PREFIX_CHECK_g; both exist, with the message type that the check needs.
 */
public final class Main {
    private static final ClientServiceProvider CLIENTS = ClientServiceProvider.loadService();
    private static final int DEADLINE_S = 90;
    private final ClientConfiguration configuration;
    private final String topic;
    private final List<AutoCloseable> toClose = new ArrayList<>();

    private Main(String endpoint, String topic) {
        this.configuration = ClientConfiguration.newBuilder().setEndpoints(endpoint)
            .setRequestTimeout(Duration.ofSeconds(10)).build();
        this.topic = topic;
    }

    private interface Check {
        void run(Main env) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Check> all = new LinkedHashMap<>();
        all.put("normal", Main::normal);
        all.put("simple", Main::simple);
        all.put("retry", Main::retry);
        all.put("tags", Main::tags);
        all.put("sql", Main::sql);
        all.put("deadletter", Main::deadLetter);
        all.put("fifo", Main::fifo);
        all.put("delay", Main::delay);
        all.put("transaction", Main::transaction);
        if (args.length == 1 && args[0].equals("--list")) {
            all.keySet().forEach(System.out::println);
            return;
        }
        List<String> wanted = Arrays.asList(args).subList(2, args.length);
        int passed = 0;
        int failed = 0;
        for (Map.Entry<String, Check> e : all.entrySet()) {
            if (!wanted.isEmpty() && !wanted.contains(e.getKey())) {
                continue;
            }
            long began = System.nanoTime();
            String reason = null;
            Main env = new Main(args[0], args[1] + "_" + e.getKey());
            try {
                e.getValue().run(env);
            } catch (Throwable t) {
                reason = t.toString().replaceAll("\\s+", " ");
                t.printStackTrace();
            }
            env.close();
            System.out.println(reason == null ? "ok " + e.getKey() + " (" + (System.nanoTime() - began) / 1000000 + " ms)"
                : "FAILED " + e.getKey() + ": " + reason);
            System.out.flush();
            if (reason == null) {
                passed++;
            } else {
                failed++;
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.out.flush();
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }

    // ---- what checks work with ----

    private void close() {
        Collections.reverse(toClose);
        for (AutoCloseable c : toClose) {
            try {
                c.close();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }
    }

    private static void require(boolean condition, String reason) {
        if (!condition) {
            throw new IllegalStateException(reason);
        }
    }

    private static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + DEADLINE_S * 1000000000L;
        while (!condition.call()) {
            require(System.nanoTime() < end, "not within " + DEADLINE_S + " s: " + what);
            Thread.sleep(20);
        }
    }

    private Producer producer() throws Exception {
        Producer p = CLIENTS.newProducerBuilder().setClientConfiguration(configuration).setTopics(topic).build();
        toClose.add(p);
        return p;
    }

    private MessageBuilder message(String body) {
        return CLIENTS.newMessageBuilder().setTopic(topic).setKeys("k" + body)
            .setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    private static String body(MessageView m) {
        byte[] b = new byte[m.getBody().remaining()];
        m.getBody().duplicate().get(b);
        return new String(b, StandardCharsets.UTF_8);
    }

    private PushConsumer push(FilterExpression filter, org.apache.rocketmq.client.apis.consumer.MessageListener l)
        throws Exception {
        PushConsumer c = CLIENTS.newPushConsumerBuilder().setClientConfiguration(configuration)
            .setConsumerGroup(topic + "_g").setSubscriptionExpressions(Collections.singletonMap(topic, filter))
            .setMessageListener(l).setConsumptionThreadCount(4).build();
        toClose.add(c);
        return c;
    }

    /** Counts what comes, by body. */
    private static final class Sink {
        final Map<String, AtomicInteger> came = new ConcurrentHashMap<>();

        ConsumeResult take(MessageView m) {
            came.computeIfAbsent(body(m), k -> new AtomicInteger()).incrementAndGet();
            return ConsumeResult.SUCCESS;
        }

        void exactlyOnce(Set<String> want) throws Exception {
            until("all of " + want.size() + " messages", () -> came.keySet().containsAll(want));
            Thread.sleep(2000);
            came.forEach((b, n) -> {
                require(want.contains(b), "received what was not sent to it: " + b);
                require(n.get() == 1, "received " + n + " times: " + b);
            });
        }
    }

    // ---- checks ----

    private static void normal(Main env) throws Exception {
        Sink sink = new Sink();
        env.push(FilterExpression.SUB_ALL, sink::take);
        Producer p = env.producer();
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 200; i++) {
            p.send(env.message("m" + i).setTag("t").addProperty("p", "v").build());
            want.add("m" + i);
        }
        sink.exactlyOnce(want);
    }

    /** A simple consumer: receive, acknowledge, another invisible time, and what was not acknowledged again. */
    private static void simple(Main env) throws Exception {
        Producer p = env.producer();
        for (int i = 0; i < 10; i++) {
            p.send(env.message("m" + i).build());
        }
        SimpleConsumer c = CLIENTS.newSimpleConsumerBuilder().setClientConfiguration(env.configuration)
            .setConsumerGroup(env.topic + "_g").setAwaitDuration(Duration.ofSeconds(5))
            .setSubscriptionExpressions(Collections.singletonMap(env.topic, FilterExpression.SUB_ALL)).build();
        env.toClose.add(c);
        Map<String, MessageView> got = new HashMap<>();
        until("ten messages", () -> {
            for (MessageView m : c.receive(16, Duration.ofSeconds(10))) {
                require(got.put(body(m), m) == null, "twice: " + body(m));
            }
            return got.size() == 10;
        });
        long received = System.nanoTime();
        c.changeInvisibleDuration(got.get("m1"), Duration.ofSeconds(20));
        for (Map.Entry<String, MessageView> e : got.entrySet()) {
            if (!e.getKey().equals("m0") && !e.getKey().equals("m1")) {
                c.ack(e.getValue());
            }
        }
        Map<String, Long> again = new HashMap<>();
        until("the two that were not acknowledged", () -> {
            for (MessageView m : c.receive(16, Duration.ofSeconds(30))) {
                require(m.getDeliveryAttempt() == 2, "attempt " + m.getDeliveryAttempt() + " of " + body(m));
                again.put(body(m), (System.nanoTime() - received) / 1000000000);
                c.ack(m);
            }
            return again.size() >= 2;
        });
        require(again.keySet().equals(new HashSet<>(Arrays.asList("m0", "m1"))), "again: " + again);
        require(again.get("m0") >= 5 && again.get("m1") >= 18, "they came after " + again + " s");
        require(c.receive(16, Duration.ofSeconds(10)).isEmpty(), "nothing more");
    }

    private static void retry(Main env) throws Exception {
        List<Integer> attempts = Collections.synchronizedList(new ArrayList<>());
        env.push(FilterExpression.SUB_ALL, m -> {
            attempts.add(m.getDeliveryAttempt());
            return m.getDeliveryAttempt() < 2 ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
        });
        env.producer().send(env.message("again").build());
        until("two attempts", () -> attempts.size() >= 2);
        Thread.sleep(3000);
        require(attempts.equals(Arrays.asList(1, 2)), "attempts " + attempts);
    }

    private static void sql(Main env) throws Exception {
        Sink sink = new Sink();
        env.push(new FilterExpression("n > 5 AND n <= 15", FilterExpressionType.SQL92), sink::take);
        Producer p = env.producer();
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 40; i++) {
            p.send(env.message("m" + i).addProperty("n", String.valueOf(i)).build());
            if (i > 5 && i <= 15) {
                want.add("m" + i);
            }
        }
        sink.exactlyOnce(want);
    }

    /** The group allows one more attempt: after it the message is a dead letter, and comes no more. */
    private static void deadLetter(Main env) throws Exception {
        Map<String, AtomicInteger> came = new ConcurrentHashMap<>();
        env.push(FilterExpression.SUB_ALL, m -> {
            came.computeIfAbsent(body(m), k -> new AtomicInteger()).incrementAndGet();
            return body(m).equals("bad") ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
        });
        Producer p = env.producer();
        p.send(env.message("bad").build());
        p.send(env.message("good").build());
        until("both attempts", () -> came.containsKey("bad") && came.get("bad").get() == 2);
        Thread.sleep(20000);
        require(came.get("bad").get() == 2, came.get("bad") + " attempts");
        require(came.get("good").get() == 1, came.get("good") + " deliveries of what was consumed");
    }

    private static void tags(Main env) throws Exception {
        Sink sink = new Sink();
        env.push(new FilterExpression("A || B", FilterExpressionType.TAG), sink::take);
        Producer p = env.producer();
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 60; i++) {
            String tag = new String[] {"A", "B", "C"}[i % 3];
            p.send(env.message(tag + i).setTag(tag).build());
            if (i % 3 != 2) {
                want.add(tag + i);
            }
        }
        sink.exactlyOnce(want);
    }

    /** Each message group comes in its order, also when one is refused once. */
    private static void fifo(Main env) throws Exception {
        Map<String, List<String>> came = new ConcurrentHashMap<>();
        Set<String> refused = ConcurrentHashMap.newKeySet();
        env.push(FilterExpression.SUB_ALL, m -> {
            String b = body(m);
            if (b.endsWith(":7") && refused.add(b)) {
                return ConsumeResult.FAILURE;
            }
            came.computeIfAbsent(m.getMessageGroup().orElse(""), k -> Collections.synchronizedList(new ArrayList<>()))
                .add(b);
            return ConsumeResult.SUCCESS;
        });
        Producer p = env.producer();
        for (int i = 0; i < 20; i++) {
            for (String group : new String[] {"x", "y", "z"}) {
                p.send(env.message(group + ":" + i).setMessageGroup(group).build());
            }
        }
        until("60 messages", () -> came.values().stream().mapToInt(List::size).sum() >= 60);
        Thread.sleep(2000);
        for (String group : new String[] {"x", "y", "z"}) {
            List<String> want = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                want.add(group + ":" + i);
            }
            require(want.equals(came.get(group)), "order of " + group + ": " + came.get(group));
        }
    }

    private static void delay(Main env) throws Exception {
        Map<String, Long> came = new ConcurrentHashMap<>();
        env.push(FilterExpression.SUB_ALL, m -> {
            came.put(body(m), System.currentTimeMillis());
            return ConsumeResult.SUCCESS;
        });
        Producer p = env.producer();
        long due = System.currentTimeMillis() + 4000;
        p.send(env.message("later").setDeliveryTimestamp(due).build());
        until("the delayed message", () -> came.containsKey("later"));
        // The reference delivers in whole seconds, rounded down.
        require(came.get("later") > due - 1100, (due - came.get("later")) + " ms early");
    }

    private static void transaction(Main env) throws Exception {
        Sink sink = new Sink();
        env.push(FilterExpression.SUB_ALL, sink::take);
        Producer p = CLIENTS.newProducerBuilder().setClientConfiguration(env.configuration).setTopics(env.topic)
            .setTransactionChecker(m -> body(m).startsWith("unknown") ? TransactionResolution.COMMIT
                : TransactionResolution.ROLLBACK).build();
        env.toClose.add(p);
        Set<String> want = new HashSet<>();
        for (int i = 0; i < 10; i++) {
            for (String kind : new String[] {"commit", "rollback"}) {
                Transaction t = p.beginTransaction();
                Message m = env.message(kind + i).build();
                p.send(m, t);
                if (kind.equals("commit")) {
                    t.commit();
                    want.add(kind + i);
                } else {
                    t.rollback();
                }
            }
        }
        p.send(env.message("unknown").build(), p.beginTransaction());
        want.add("unknown");
        sink.exactlyOnce(want);
    }
}
