package rmqd.interop;

import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** A consumer that stays a member of its group until standard input ends, for tools that look at groups. */
final class Hold {
    private Hold() {
    }

    static void run(String namesrv, String topic, String group, int n) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setPersistConsumerOffsetInterval(500);
        c.setMqClientApiTimeout(Env.API_TIMEOUT_MS);
        c.subscribe(topic, "*");
        AtomicInteger seen = new AtomicInteger();
        c.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
            int now = seen.addAndGet(msgs.size());
            if (now >= n && now - msgs.size() < n) {
                System.out.println("received " + n);
                System.out.flush();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        while (System.in.read() >= 0) {
            continue;
        }
        c.shutdown();
    }
}
