package rmqd.interop;

import static rmqd.interop.Failure.equal;
import static rmqd.interop.Failure.require;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Transactions: ended at once, ended when the broker asks, and by another producer of the group. */
final class TransactionChecks {
    private TransactionChecks() {
    }

    static void add(Map<String, Check> all) {
        all.put("transaction", TransactionChecks::endedAtOnce);
        all.put("transaction_check", TransactionChecks::endedWhenAsked);
        all.put("transaction_other_producer", TransactionChecks::endedByAnother);
    }

    /** Ends by the message's tag, at once or when it is asked; counts the questions by body. */
    private static final class Local implements TransactionListener {
        final boolean atOnce;
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
            return wanted(m.getTags());
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
}
