package rmqd.interop;

import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** A consumer that stays a member of its group until standard input ends, for tools that look at groups. */
final class Hold {
    private Hold() {
    }

    private static DefaultMQPushConsumer consumer(String namesrv, String topic, String group) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setPersistConsumerOffsetInterval(500);
        c.setMqClientApiTimeout(Env.API_TIMEOUT_MS);
        c.subscribe(topic, "*");
        return c;
    }

    private static void untilInputEnds(DefaultMQPushConsumer c) throws Exception {
        c.start();
        while (System.in.read() >= 0) {
            continue;
        }
        c.shutdown();
    }

    static void orderly(String namesrv, String topic, String group) throws Exception {
        DefaultMQPushConsumer c = consumer(namesrv, topic, group);
        c.registerMessageListener((MessageListenerOrderly) (msgs, context) -> {
            synchronized (System.out) {
                msgs.forEach(m -> System.out.println(Sink.body(m)));
                System.out.flush();
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        untilInputEnds(c);
    }

    static void run(String namesrv, String topic, String group, int n) throws Exception {
        DefaultMQPushConsumer c = consumer(namesrv, topic, group);
        AtomicInteger seen = new AtomicInteger();
        c.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
            int now = seen.addAndGet(msgs.size());
            if (now >= n && now - msgs.size() < n) {
                System.out.println("received " + n);
                System.out.flush();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        untilInputEnds(c);
    }
}
