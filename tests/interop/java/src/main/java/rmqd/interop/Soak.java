package rmqd.interop;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Clients of a soak (tests/soak): sends messages of every kind until standard input says "stop", consumes until it
 * ends, and tells of each message on standard output. What the lines mean stands in tests/soak/checker.py.
 *
 * <p>Sends are not tried again by the client but where that is harmless: a second copy is the broker's then.
 */
final class Soak {
    static final int STARTS = 10;
    private static final int ORDER_KEYS = 20;
    private static final int[] LEVEL_SECONDS = {1, 5, 10, 30};
    private static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
    private static final AtomicInteger NEXT = new AtomicInteger();

    private final String namesrv;
    private final double rate;
    private final Random random = new Random();
    private final List<Thread> threads = new ArrayList<>();
    private volatile boolean stopping;

    private Soak(String namesrv, double rate) {
        this.namesrv = namesrv;
        this.rate = rate;
    }

    /** One kind of sends: sends one message, or more of the same key. */
    private interface Work {
        void send(String key) throws Exception;
    }

    /** @param role "all", or "order": an orderly consumer only, which is killed now and then */
    static void run(String namesrv, String role, double rate) throws Exception {
        new SoakConsumers(namesrv).start(role);
        Soak soak = new Soak(namesrv, rate);
        if (role.equals("all")) {
            soak.startProducers();
        }
        say("ready", role);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("stop")) {
                soak.stop();
                say("stopped", role);
            }
        }
        System.exit(0);         // what is not consumed stays so
    }

    /** One line: tab-separated, begun by "@". */
    static void say(Object... fields) {
        StringBuilder line = new StringBuilder("@");
        for (Object f : fields) {
            line.append('\t').append(f);
        }
        synchronized (OUT) {
            OUT.println(line);
        }
    }

    /** Microseconds of the wall clock, which all programs of a soak share. */
    static long us() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1000000 + now.getNano() / 1000;
    }

    static String instance() {
        return "soak-" + ProcessHandle.current().pid() + "-" + NEXT.incrementAndGet();
    }

    private void stop() throws InterruptedException {
        stopping = true;
        for (Thread t : threads) {
            t.join();
        }
    }

    private void every(String kind, double perSecond, Work work) {
        Thread t = new Thread(() -> {
            long period = (long) (1e9 / (perSecond * rate));
            long next = System.nanoTime();
            for (int n = 0; !stopping; n++) {
                next = Math.max(next + period, System.nanoTime() - 10 * period);
                pause((next - System.nanoTime()) / 1000000);
                String key = kind + n;
                try {
                    work.send(key);
                } catch (Exception e) {
                    say("F", kind, key, us(), e.toString().replaceAll("\\s+", " "));
                }
            }
        }, "send " + kind);
        threads.add(t);
        t.start();
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(Math.max(ms, 0));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private <P extends DefaultMQProducer> P started(P p, int retries) throws MQClientException {
        p.setNamesrvAddr(namesrv);
        p.setInstanceName(instance());
        p.setSendMsgTimeout(10000);
        p.setMqClientApiTimeout(Env.API_TIMEOUT_MS);
        p.setRetryTimesWhenSendFailed(retries);
        p.start();
        return p;
    }

    private void startProducers() throws Exception {
        DefaultMQProducer patient = started(new DefaultMQProducer("p_soak_plain"), 2);
        DefaultMQProducer once = started(new DefaultMQProducer("p_soak"), 0);
        every("plain", 40, key -> sendOne(patient, "plain", message("soak_plain", key), 0, ""));
        every("delay", 10, key -> sendLevel(once, key));
        every("timer", 15, key -> sendTimer(once, key));
        every("retry", 4, key -> sendRetry(once, key));
        every("pop", 15, key -> sendPopped(once, key));
        every("dedup", 6, key -> sendRepeated(once, key));
        every("order", 40, new Ordered(once));
        TransactionMQProducer transactions = new TransactionMQProducer("p_soak_tran");
        transactions.setTransactionListener(new Local());
        started(transactions, 0);
        every("tran", 12, key -> sendTransaction(transactions, key));
    }

    private static Message message(String topic, String key) {
        return new Message(topic, "soak", key, key.getBytes());
    }

    private static String place(SendResult r) {
        return r.getMessageQueue().getQueueId() + ":" + r.getQueueOffset();
    }

    /** @param due when it may come, 0: at once */
    private static SendResult sendOne(DefaultMQProducer p, String kind, Message m, long due, String want)
        throws Exception {
        say("S", kind, m.getKeys(), us(), due, want);
        SendResult r = p.send(m);
        if (r.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException(r.getSendStatus().toString());
        }
        say("A", kind, m.getKeys(), us(), place(r));
        return r;
    }

    private void sendLevel(DefaultMQProducer p, String key) throws Exception {
        int level = random.nextInt(LEVEL_SECONDS.length);
        Message m = message("soak_delay", key);
        m.setDelayTimeLevel(level + 1);
        sendOne(p, "delay", m, us() + LEVEL_SECONDS[level] * 1000000L, "");
    }

    private void sendTimer(DefaultMQProducer p, String key) throws Exception {
        Message m = message("soak_timer", key);
        int delay = 1 + random.nextInt(random.nextInt(3) == 0 ? 60000 : 8000);
        long due = us() + delay * 1000L;
        switch (random.nextInt(3)) {
            case 0:
                due = due / 1000 * 1000;
                MessageAccessor.putProperty(m, "TIMER_DELIVER_MS", "" + due / 1000);
                break;
            case 1:
                MessageAccessor.putProperty(m, "TIMER_DELAY_SEC", "" + (delay / 1000 + 1));
                due = us() + (delay / 1000 + 1) * 1000000L;
                break;
            default:
                MessageAccessor.putProperty(m, "TIMER_DELAY_MS", "" + delay);
        }
        SendResult r = sendOne(p, "timer", m, due, "");
        if (delay > 5000 && random.nextInt(4) == 0) {
            recall(p, key, r);
        }
    }

    /** Clients since 5.4 can. */
    private static void recall(DefaultMQProducer p, String key, SendResult r) throws Exception {
        java.lang.reflect.Method handle;
        java.lang.reflect.Method recall;
        try {
            handle = SendResult.class.getMethod("getRecallHandle");
            recall = p.getClass().getMethod("recallMessage", String.class, String.class);
        } catch (NoSuchMethodException e) {
            return;
        }
        say("V", "timer", key, us());
        recall.invoke(p, "soak_timer", handle.invoke(r));
        say("X", "timer", key, us());
    }

    private void sendRetry(DefaultMQProducer p, String key) throws Exception {
        String[] wants = {"fail0", "fail1", "fail2", "dead"};
        String want = wants[random.nextInt(wants.length)];
        Message m = message("soak_retry", key);
        m.setTags(want);
        sendOne(p, "retry", m, 0, want);
    }

    private void sendPopped(DefaultMQProducer p, String key) throws Exception {
        String want = random.nextInt(10) == 0 ? "fail1" : "fail0";
        Message m = message("soak_pop", key);
        m.setTags(want);
        sendOne(p, "pop", m, 0, want);
    }

    /** The same key several times, and until one was acknowledged: as an application that wants to be sure. */
    private void sendRepeated(DefaultMQProducer p, String key) {
        int acknowledged = 0;
        for (int n = 1 + random.nextInt(3); n > 0 && !(stopping && acknowledged > 0);) {
            try {
                sendOne(p, "dedup", message("soak_dedup", key), 0, "");
                acknowledged++;
                n--;
            } catch (Exception e) {
                say("F", "dedup", key, us(), e.toString().replaceAll("\\s+", " "));
                pause(200);
            }
        }
    }

    /** Numbers per order key, each sent until it is acknowledged and then the next. */
    private final class Ordered implements Work {
        private final DefaultMQProducer producer;
        private final int[] next = new int[ORDER_KEYS];
        private int turn;

        Ordered(DefaultMQProducer producer) {
            this.producer = producer;
        }

        @Override
        public void send(String ignored) {
            int who = turn++ % ORDER_KEYS;
            String key = who + "/" + next[who]++;
            Message m = message("soak_order", key);
            say("S", "order", key, us(), 0, "");
            while (true) {
                try {
                    SendResult r = producer.send(m, (mqs, x, arg) -> mqs.get((int) arg % mqs.size()), who);
                    if (r.getSendStatus() == SendStatus.SEND_OK) {
                        say("A", "order", key, us(), place(r));
                        return;
                    }
                } catch (Exception e) {
                    say("F", "order", key, us(), e.toString().replaceAll("\\s+", " "));
                }
                pause(200);
            }
        }
    }

    /** Ends transactions by their tags: what they want, and whether the broker has to ask for it. */
    private static final class Local implements TransactionListener {
        private static LocalTransactionState wanted(Message m) {
            return m.getTags().startsWith("commit") ? LocalTransactionState.COMMIT_MESSAGE
                : LocalTransactionState.ROLLBACK_MESSAGE;
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
            return m.getTags().endsWith("later") ? LocalTransactionState.UNKNOW : wanted(m);
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt m) {
            say("C", "tran", m.getKeys(), us());
            return wanted(m);
        }
    }

    private void sendTransaction(TransactionMQProducer p, String key) throws Exception {
        String want = random.nextInt(3) == 0 ? "rollback" : "commit";
        Message m = message("soak_tran", key);
        m.setTags(random.nextInt(3) == 0 ? want + "later" : want);
        say("S", "tran", key, us(), 0, want);
        SendResult r = p.sendMessageInTransaction(m, null);
        if (r.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException(r.getSendStatus().toString());
        }
        say("A", "tran", key, us(), "half");
    }
}
