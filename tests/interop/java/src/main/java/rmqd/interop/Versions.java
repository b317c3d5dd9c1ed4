package rmqd.interop;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Collections;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;

/** The two calls that client 4.9 and 5.x spell differently, found by reflection so that one source fits both. */
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
            if (types.length == 4 && types[3] == java.util.Map.class) {
                invoke(m, p, "TBW102", topic, queues, Collections.emptyMap());
                return;
            }
        }
        throw new NoSuchMethodException("createTopic");
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

    private static void invoke(Method m, Object on, Object... args) throws Exception {
        try {
            m.invoke(on, args);
        } catch (InvocationTargetException e) {
            throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
        }
    }
}
