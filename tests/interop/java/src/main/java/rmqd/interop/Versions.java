package rmqd.interop;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Calls that client 4.9 and 5.x spell differently, or 5.x alone has, by reflection so that one source fits both. */
final class Versions {
    private Versions() {
    }

    /** 5.x has a map of attributes as a fourth parameter. */
    static void createTopic(DefaultMQProducer p, String topic, int queues) throws Exception {
        for (Method m : DefaultMQProducer.class.getMethods()) {
            Class<?>[] types = m.getParameterTypes();
            if (!m.getName().equals("createTopic") || types.length < 3 || types[2] != int.class) {
                continue;
            }
            if (types.length == 3) {
                invoke(m, p, "TBW102", topic, queues);
                return;
            }
            if (types.length == 4 && types[3] == Map.class) {
                invoke(m, p, "TBW102", topic, queues, Collections.emptyMap());
                return;
            }
        }
        throw new NoSuchMethodException("createTopic");
    }

    /**
     * With attributes, "+name" to value; the producer's own call leaves them out. False: a client without them.
     *
     * @param model a topic of the same broker
     */
    static boolean createTopic(DefaultMQProducer p, String model, String topic, int queues, Map<String, String> attributes)
        throws Exception {
        TopicConfig config = new TopicConfig(topic, queues, queues, 6);
        try {
            invoke(TopicConfig.class.getMethod("setAttributes", Map.class), config, attributes);
        } catch (NoSuchMethodException e) {
            return false;
        }
        MQClientInstance factory = p.getDefaultMQProducerImpl().getMqClientFactory();
        factory.updateTopicRouteInfoFromNameServer(model);
        String broker = p.fetchPublishMessageQueues(model).get(0).getBrokerName();
        factory.getMQClientAPIImpl().createTopic(factory.findBrokerAddressInPublish(broker), "TBW102", config,
            Env.API_TIMEOUT_MS);
        return true;
    }

    /** MessageModel moved to another package. */
    static void setBroadcasting(DefaultMQPushConsumer c) throws Exception {
        for (Method m : DefaultMQPushConsumer.class.getMethods()) {
            if (m.getName().equals("setMessageModel")) {
                for (Object model : m.getParameterTypes()[0].getEnumConstants()) {
                    if (((Enum<?>) model).name().equals("BROADCASTING")) {
                        invoke(m, c, model);
                        return;
                    }
                }
            }
        }
        throw new NoSuchMethodException("setMessageModel");
    }

    private static Method compressTypeSetter() {
        for (Method m : DefaultMQProducer.class.getMethods()) {
            if (m.getName().equals("setCompressType") && m.getParameterCount() == 1) {
                return m;
            }
        }
        return null;
    }

    /** Names of what a producer can compress with; none: it cannot choose. */
    static List<String> compressTypes() {
        List<String> names = new ArrayList<>();
        Method setter = compressTypeSetter();
        if (setter != null) {
            for (Object type : setter.getParameterTypes()[0].getEnumConstants()) {
                names.add(((Enum<?>) type).name());
            }
        }
        return names;
    }

    static void setCompressType(DefaultMQProducer p, String name) throws Exception {
        Method setter = compressTypeSetter();
        for (Object type : setter.getParameterTypes()[0].getEnumConstants()) {
            if (((Enum<?>) type).name().equals(name)) {
                invoke(setter, p, type);
            }
        }
    }

    /** False: a client without priorities. */
    static boolean setPriority(Message message, int priority) throws Exception {
        try {
            invoke(Message.class.getMethod("setPriority", int.class), message, priority);
            return true;
        } catch (NoSuchMethodException e) {
            return false;
        }
    }

    static boolean hasPop() {
        try {
            DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class);
            return true;
        } catch (NoSuchMethodException e) {
            return false;
        }
    }

    static void setClientRebalance(DefaultMQPushConsumer c, boolean on) throws Exception {
        invoke(DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class), c, on);
    }

    static void setPopInvisibleTime(DefaultMQPushConsumer c, long ms) throws Exception {
        invoke(DefaultMQPushConsumer.class.getMethod("setPopInvisibleTime", long.class), c, ms);
    }

    /** SET_MESSAGE_REQUEST_MODE at each broker of the topic: the group pops it, everybody all queues. */
    static void setPop(DefaultMQProducer p, String topic, String group) throws Exception {
        MQClientInstance client = p.getDefaultMQProducerImpl().getMqClientFactory();
        client.updateTopicRouteInfoFromNameServer(topic);
        for (Method m : MQClientAPIImpl.class.getMethods()) {
            if (!m.getName().equals("setMessageRequestMode")) {
                continue;
            }
            for (Object mode : m.getParameterTypes()[3].getEnumConstants()) {
                if (((Enum<?>) mode).name().equals("POP")) {
                    String addr = client.findBrokerAddressInPublish(p.fetchPublishMessageQueues(topic).get(0)
                        .getBrokerName());
                    invoke(m, client.getMQClientAPIImpl(), addr, topic, group, mode, 0, 10000L);
                    return;
                }
            }
        }
        throw new NoSuchMethodException("setMessageRequestMode");
    }

    /** The queues that the consumer pops. */
    static Set<MessageQueue> popQueues(DefaultMQPushConsumer c, String topic) throws Exception {
        Object rebalance = c.getDefaultMQPushConsumerImpl().getRebalanceImpl();
        Map<?, ?> table = (Map<?, ?>) invoke(rebalance.getClass().getMethod("getPopProcessQueueTable"), rebalance);
        Set<MessageQueue> queues = new HashSet<>();
        for (Object q : table.keySet()) {
            if (((MessageQueue) q).getTopic().equals(topic)) {
                queues.add((MessageQueue) q);
            }
        }
        return queues;
    }

    private static Object invoke(Method m, Object on, Object... args) throws Exception {
        try {
            return m.invoke(on, args);
        } catch (InvocationTargetException e) {
            throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
        }
    }
}
