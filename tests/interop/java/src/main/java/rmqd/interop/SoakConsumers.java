package rmqd.interop;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** The consumers of a soak: each message that comes is a line. */
final class SoakConsumers {
    private static final int MAX_TIMES = 3;

    private final String namesrv;

    SoakConsumers(String namesrv) {
        this.namesrv = namesrv;
    }

    void start(String role) throws Exception {
        startOrderly();
        if (!role.equals("all")) {
            return;
        }
        for (String kind : new String[] {"plain", "plain", "delay", "timer", "tran", "dedup"}) {
            startPlain(kind, "soak_" + kind, "g_soak_" + kind);
        }
        startRetrying();
        startPlain("dlq", "%DLQ%g_soak_retry", "g_soak_dlq");
        DefaultMQProducer p = new DefaultMQProducer("p_soak_mode");
        p.setNamesrvAddr(namesrv);
        p.setInstanceName(Soak.instance());
        p.start();
        Versions.setPop(p, "soak_pop", "g_soak_pop");
        p.shutdown();
        startPopping();
        startPopping();
    }

    private void startPopping() throws Exception {
        start("g_soak_pop", "soak_pop", c -> {
            Versions.setClientRebalance(c, false);
            c.registerMessageListener(failing("pop", c));
        });
    }

    /** What makes a consumer of its own of one that is not started. */
    private interface Listening {
        void register(DefaultMQPushConsumer c) throws Exception;
    }

    /** A start fails when the first answer of the name server comes late: then another consumer is started. */
    private void start(String group, String topic, Listening listening) throws Exception {
        for (int tries = 1;; tries++) {
            DefaultMQPushConsumer c = consumer(group, topic);
            listening.register(c);
            try {
                c.start();
                return;
            } catch (MQClientException e) {
                c.shutdown();
                if (tries == Soak.STARTS) {
                    throw e;
                }
            }
        }
    }

    private DefaultMQPushConsumer consumer(String group, String topic) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setInstanceName(Soak.instance());
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setMqClientApiTimeout(Env.API_TIMEOUT_MS);
        c.setConsumeThreadMin(2);
        c.setConsumeThreadMax(4);
        c.setMaxReconsumeTimes(MAX_TIMES);
        c.subscribe(topic, "*");
        return c;
    }

    private static void came(String kind, String consumer, List<MessageExt> msgs) {
        long now = Soak.us();
        for (MessageExt m : msgs) {
            Soak.say("R", kind, m.getKeys(), now, m.getQueueId() + ":" + m.getQueueOffset(),
                m.getReconsumeTimes(), consumer);
        }
    }

    private void startPlain(String kind, String topic, String group) throws Exception {
        start(group, topic, c -> c.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
            came(kind, c.getInstanceName(), msgs);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }));
    }

    /** The tag says how often a message fails before it is taken. */
    private void startRetrying() throws Exception {
        start("g_soak_retry", "soak_retry", c -> c.registerMessageListener(failing("retry", c)));
    }

    private static MessageListenerConcurrently failing(String kind, DefaultMQPushConsumer c) {
        return (msgs, context) -> {
            came(kind, c.getInstanceName(), msgs);
            context.setDelayLevelWhenNextConsume(1);
            MessageExt m = msgs.get(0);
            boolean fails = m.getTags().equals("dead")
                || m.getReconsumeTimes() < Integer.parseInt(m.getTags().substring("fail".length()));
            return fails ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    /** Now and then it wants to have a message once more before the next. */
    private void startOrderly() throws Exception {
        start("g_soak_order", "soak_order", c -> {
            c.setMaxReconsumeTimes(Integer.MAX_VALUE);
            c.setSuspendCurrentQueueTimeMillis(100);
            c.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
                came("order", c.getInstanceName(), msgs);
                return ThreadLocalRandom.current().nextInt(100) == 0
                    ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
            });
        });
    }
}
