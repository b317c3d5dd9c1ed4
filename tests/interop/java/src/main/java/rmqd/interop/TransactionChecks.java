package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Transactions: ended at once, ended when the broker asks, and by another producer of the group. */
final class TransactionChecks {
    private TransactionChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("transaction", TransactionChecks::endedAtOnce);
        all.put("transaction_check", TransactionChecks::endedWhenAsked);
        all.put("transaction_other_producer", TransactionChecks::endedByAnother);
        all.put("transaction_offline_group", TransactionChecks::offlineGroup);
    }

    /** Those that need a broker of their own, which asks soon and not often. */
    static void addAlone(Map<String, Check> all) {
        all.put("transaction_set_aside", TransactionChecks::setAside);
        all.put("transaction_over_restart", TransactionChecks::overRestart);
    }

    /** Ends by the message's tag, at once or when it is asked; counts the questions by body. */
    private static final class Local implements TransactionListener {
        final boolean atOnce;
        volatile boolean undecided;
        final Map<String, AtomicInteger> asked = new ConcurrentHashMap<>();

        Local(boolean atOnce) {
            this.atOnce = atOnce;
        }

        private static LocalTransactionState wanted(String tag) {
            return "commit".equals(tag) ? LocalTransactionState.COMMIT_MESSAGE
                : LocalTransactionState.ROLLBACK_MESSAGE;
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
            return atOnce ? wanted(m.getTags()) : LocalTransactionState.UNKNOW;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt m) {
            asked.computeIfAbsent(Sink.body(m), k -> new AtomicInteger()).incrementAndGet();
            return undecided ? LocalTransactionState.UNKNOW : wanted(m.getTags());
        }
    }

    private static TransactionMQProducer producer(Env env, String group, Local local) throws Exception {
        TransactionMQProducer p = new TransactionMQProducer(group);
        p.setNamesrvAddr(env.namesrv);
        p.setInstanceName(env.name("i"));
        p.setSendMsgTimeout(10000);
        p.setTransactionListener(local);
        p.start();
        env.onClose(p::shutdown);
        return p;
    }

    /** Sends commit0, rollback0, commit1, ...; returns the bodies that consumers are to see. */
    private static Set<String> send(TransactionMQProducer p, String topic, int from, int to) throws Exception {
        Set<String> want = new HashSet<>();
        for (int i = from; i < to; i++) {
            for (String tag : new String[] {"commit", "rollback"}) {
                Message m = new Message(topic, tag, "k" + tag + i, (tag + i).getBytes());
                TransactionSendResult r = p.sendMessageInTransaction(m, null);
                require(r.getTransactionId() != null, "a transaction id");
                equal(r.getMessageQueue().getTopic(), topic, "topic of the result");
            }
            want.add("commit" + i);
        }
        return want;
    }

    static void endedAtOnce(Env env) throws Exception {
        String topic = env.topic(4);
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        Local local = new Local(true);
        Set<String> want = send(producer(env, env.group(), local), topic, 0, 20);
        for (MessageExt m : sink.exactlyOnce(want)) {
            equal(m.getTags(), "commit", "tag");
            equal(m.getKeys(), "k" + Sink.body(m), "keys");
            require(m.getPreparedTransactionOffset() >= 0, "where the half message lay");
        }
        require(local.asked.isEmpty(), "nobody has to be asked, but was about " + local.asked.keySet());
    }

    static void endedWhenAsked(Env env) throws Exception {
        String topic = env.topic(4);
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        Local local = new Local(false);
        TransactionMQProducer p = producer(env, env.group(), local);
        Set<String> want = send(p, topic, 0, 10);
        Env.until("a question about each message", () -> local.asked.size() == 20);
        sink.exactlyOnce(want);
    }

    static void endedByAnother(Env env) throws Exception {
        String topic = env.topic(4);
        String group = env.group();
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        TransactionMQProducer gone = producer(env, group, new Local(false));
        Set<String> want = send(gone, topic, 0, 5);
        gone.shutdown();
        Local local = new Local(false);
        TransactionMQProducer there = producer(env, group, local);
        // A client tells of itself the brokers that it has sent to, each 30 s.
        want.addAll(send(there, topic, 5, 6));
        Env.until("a question about each message, to the producer that is there", 150,
            () -> local.asked.size() == 12);
        sink.exactlyOnce(want);
    }

    /** What a group has left open whose producers are all away delays nobody else. */
    static void offlineGroup(Env env) throws Exception {
        String topic = env.topic(4);
        Local undecided = new Local(false);
        undecided.undecided = true;     // a slow machine asks it before it is gone
        TransactionMQProducer gone = producer(env, env.group(), undecided);
        send(gone, topic, 0, 20);
        gone.shutdown();
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        Local local = new Local(false);
        Set<String> want = send(producer(env, env.group(), local), topic, 100, 105);
        Env.until("a question about each message of the group that is there", () -> local.asked.size() == 10);
        sink.exactlyOnce(want);
    }

    /** transactionCheckMax questions that nobody can answer, then it is out of the way: no more questions, and not lost. */
    static void setAside(Env env) throws Exception {
        String topic = env.topic(1);
        Local local = new Local(false);
        local.undecided = true;
        Set<String> want = send(producer(env, env.group(), local), topic, 0, 2);
        MessageQueue aside = new MessageQueue("TRANS_CHECK_MAX_TIME_TOPIC", env.queues(topic).get(0).getBrokerName(), 0);
        Set<String> found = new HashSet<>();
        DefaultMQPullConsumer c = PullChecks.pullConsumer(env, env.group());
        Env.until("both commits set aside", 150, () -> {
            try {
                PullResult r = c.pull(aside, "*", 0, 32, 20000);
                if (r.getPullStatus() == PullStatus.FOUND) {
                    r.getMsgFoundList().stream().filter(m -> topic.equals(m.getProperty("REAL_TOPIC")))
                        .forEach(m -> found.add(Sink.body(m)));
                }
            } catch (MQClientException e) {
                Thread.sleep(1000);     // there is no such topic before something is set aside
            }
            return found.containsAll(want);
        });
        Map<String, AtomicInteger> before = new HashMap<>();
        local.asked.forEach((k, v) -> before.put(k, new AtomicInteger(v.get())));
        env.note("questions: " + before);
        Thread.sleep(8000);
        equal(local.asked.toString(), before.toString(), "questions a while later");
        equal(env.producer().maxOffset(env.queues(topic).get(0)), 0L, "messages that were committed");
    }

    /** What is open when the broker is killed is asked about when it is back; what was ended before is not. */
    static void overRestart(Env env) throws Exception {
        String topic = env.topic(4);
        Sink sink = new Sink();
        env.push(env.group(), topic, "*", sink);
        Local ended = new Local(true);
        Set<String> want = send(producer(env, env.group(), ended), topic, 0, 10);
        Env.until("what was committed", () -> sink.messages().size() >= 10);
        Local open = new Local(false);
        open.undecided = true;
        want.addAll(send(producer(env, env.group(), open), topic, 20, 25));
        Thread.sleep(4000);     // the reference notes ends up to 3 s late
        env.restartBroker();
        open.undecided = false;
        sink.awaitAll(want);
        Thread.sleep(5000);
        Set<String> places = new HashSet<>();
        for (MessageExt m : sink.messages()) {
            require(want.contains(Sink.body(m)), Sink.body(m) + " came");
            places.add(m.getQueueId() + ":" + m.getQueueOffset());
        }
        equal(places.size(), want.size(), "messages that are visible");
        require(ended.asked.isEmpty(), "asked about what had ended: " + ended.asked.keySet());
    }
}
