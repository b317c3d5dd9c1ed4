package rmqd.interop;

import static rmqd.interop.Failure.equal;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A message that its consumer gives back at the first time, beside one that it does not, and how it comes again. */
final class Again implements MessageListenerConcurrently {
    private final List<MessageExt> got = Collections.synchronizedList(new ArrayList<>());
    private String id;

    @Override
    public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> msgs, ConsumeConcurrentlyContext context) {
        got.addAll(msgs);
        context.setDelayLevelWhenNextConsume(1);        // POP has times of its own
        boolean later = msgs.stream().anyMatch(m -> m.getReconsumeTimes() == 0 && Sink.body(m).equals("r1"));
        return later ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }

    void send(Env env, String topic) throws Exception {
        Message m = new Message(topic, "tag", "key", "r1".getBytes());
        m.putUserProperty("mine", "kept");
        id = env.send(m).getMsgId();
        env.send(new Message(topic, "r2".getBytes()));
    }

    private List<MessageExt> of(String body) {
        List<MessageExt> l = new ArrayList<>(got);
        l.removeIf(m -> !Sink.body(m).equals(body));
        return l;
    }

    /** Waits for the second delivery, which has all that the first one had; it comes out. */
    MessageExt await(String topic) throws Exception {
        Env.until("r1 twice and r2", () -> got.size() >= 3);
        Thread.sleep(Sink.QUIET_MS);
        equal(of("r2").size(), 1, "deliveries of the message that was consumed at once");
        equal(of("r1").size(), 2, "deliveries of the message that came again");
        MessageExt again = of("r1").get(1);
        equal(again.getReconsumeTimes(), 1, "reconsume times of the second delivery");
        equal(again.getTopic(), topic, "topic of the second delivery");
        equal(again.getMsgId(), id, "id of the second delivery");
        equal(again.getKeys(), "key", "keys of the second delivery");
        equal(again.getTags(), "tag", "tag of the second delivery");
        equal(again.getUserProperty("mine"), "kept", "property of the second delivery");
        return again;
    }
}
