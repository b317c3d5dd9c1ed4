package rmqd.interop;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * What a group does with a topic by POP, request by request, through the client's own calls and, where it has none,
 * its remoting client and request headers. By reflection, as client 4.9 has none of it.
 */
final class PopApi {
    private static final int PEEK_MESSAGE = 200052;
    private static final int POLLING_INFO = 200055;
    private static final String HEADERS = "org.apache.rocketmq.remoting.protocol.header.";

    private final MQClientAPIImpl api;
    private final String topic;
    private final String group;
    private final String brokerName;
    private final String address;

    PopApi(Env env, String topic, String group) throws Exception {
        MQClientInstance client = env.producer().getDefaultMQProducerImpl().getMqClientFactory();
        client.updateTopicRouteInfoFromNameServer(topic);
        this.api = client.getMQClientAPIImpl();
        this.topic = topic;
        this.group = group;
        this.brokerName = env.queues(topic).get(0).getBrokerName();
        this.address = client.findBrokerAddressInPublish(brokerName);
    }

    String group() {
        return group;
    }

    /** Code, messages and the numbers of an answer. */
    static final class Answer {
        final RemotingCommand command;

        Answer(RemotingCommand command) {
            this.command = command;
        }

        int code() {
            return command.getCode();
        }

        long number(String field) {
            return Long.parseLong(command.getExtFields().get(field));
        }

        TreeSet<String> bodies() {
            List<MessageExt> all = command.getBody() == null ? Collections.emptyList()
                : MessageDecoder.decodes(java.nio.ByteBuffer.wrap(command.getBody()));
            return PopApi.bodies(all);
        }
    }

    static TreeSet<String> bodies(List<MessageExt> messages) {
        TreeSet<String> all = new TreeSet<>();
        messages.forEach(m -> all.add(Sink.body(m)));
        return all;
    }

    private static Object header(String name, Map<String, Object> values) throws Exception {
        Object header = Class.forName(HEADERS + name).getDeclaredConstructor().newInstance();
        for (Map.Entry<String, Object> e : values.entrySet()) {
            method(header.getClass(), "set" + e.getKey()).invoke(header, e.getValue());
        }
        return header;
    }

    /** The method of that name which its class has itself, and not only by a bridge. */
    private static Method method(Class<?> type, String name) throws NoSuchMethodException {
        for (Method m : type.getMethods()) {
            if (m.getName().equals(name) && !m.isBridge() && m.getDeclaringClass() != Object.class) {
                return m;
            }
        }
        throw new NoSuchMethodException(type + "." + name);
    }

    private Answer ask(int code, String headerName, int queue, int most) throws Exception {
        Map<String, Object> values = new java.util.HashMap<>(Map.of("ConsumerGroup", group, "Topic", topic, "QueueId", queue));
        if (most > 0) {
            values.put("MaxMsgNums", most);
        }
        RemotingCommand request = RemotingCommand.createRequestCommand(code, (CommandCustomHeader) header(headerName, values));
        return new Answer(api.getRemotingClient().invokeSync(address, request, Env.API_TIMEOUT_MS));
    }

    /** PEEK_MESSAGE of any queue (-1) or one. */
    Answer peek(int queue, int most) throws Exception {
        return ask(PEEK_MESSAGE, "PeekMessageRequestHeader", queue, most);
    }

    /** POLLING_INFO: how many pops of that queue, or of any (-1), wait. */
    Answer polling(int queue) throws Exception {
        return ask(POLLING_INFO, "PollingInfoRequestHeader", queue, 0);
    }

    /** POP_ROLLBACK, as mqadmin exportPopRecord sends it. */
    void rollback() throws Exception {
        method(MQClientAPIImpl.class, "exportPopRecord").invoke(api, address, (long) Env.API_TIMEOUT_MS);
    }

    private static Object callback(String name, CompletableFuture<Object> done) throws Exception {
        Class<?> type = Class.forName("org.apache.rocketmq.client.consumer." + name);
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, m, args) -> {
            if (m.getName().equals("onSuccess")) {
                done.complete(args[0]);
            } else if (m.getName().equals("onException")) {
                done.completeExceptionally((Throwable) args[0]);
            }
            return null;
        });
    }

    /** POP_MESSAGE that waits for so long. initMode: 0 from the beginning of a queue, 1 from its end. */
    @SuppressWarnings("unchecked")
    CompletableFuture<List<MessageExt>> popLater(int queue, int most, long invisibleMs, long pollMs, int initMode)
        throws Exception {
        Object header = header("PopMessageRequestHeader", Map.of("ConsumerGroup", group, "Topic", topic, "QueueId", queue,
            "MaxMsgNums", most, "InvisibleTime", invisibleMs, "PollTime", pollMs, "BornTime", System.currentTimeMillis(),
            "InitMode", initMode, "ExpType", "TAG", "Exp", "*"));
        method(header.getClass(), "setOrder").invoke(header, Boolean.FALSE);
        CompletableFuture<Object> done = new CompletableFuture<>();
        method(MQClientAPIImpl.class, "popMessageAsync").invoke(api, brokerName, address, header,
            pollMs + Env.API_TIMEOUT_MS, callback("PopCallback", done));
        return done.thenApply(result -> {
            try {
                Object found = method(result.getClass(), "getMsgFoundList").invoke(result);
                return found == null ? Collections.<MessageExt>emptyList() : (List<MessageExt>) found;
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    List<MessageExt> pop(int most, long invisibleMs, int initMode) throws Exception {
        return popLater(-1, most, invisibleMs, 0, initMode).get(Env.API_TIMEOUT_MS, TimeUnit.MILLISECONDS);
    }

    /** Pops until there are so many messages, or for longer, until none has come for a while. */
    List<MessageExt> popAll(int count, long invisibleMs, int initMode) throws Exception {
        List<MessageExt> got = new ArrayList<>();
        Env.until(count + " messages to pop", () -> {
            got.addAll(pop(32, invisibleMs, initMode));
            return got.size() >= count;
        });
        long end = System.nanoTime() + Sink.QUIET_MS * 1000000L;
        while (System.nanoTime() < end) {
            got.addAll(pop(32, invisibleMs, initMode));
            Thread.sleep(50);
        }
        return got;
    }

    /** ACK_MESSAGE by the handle that the client has made of the answer. */
    void ack(MessageExt m) throws Exception {
        String handle = m.getProperty("POP_CK");
        Class<?> util = Class.forName(HEADERS + "ExtraInfoUtil");
        String[] parts = (String[]) util.getMethod("split", String.class).invoke(null, handle);
        Object real = util.getMethod("getRealTopic", String[].class, String.class, String.class)
            .invoke(null, parts, topic, group);
        Object queue = util.getMethod("getQueueId", String[].class).invoke(null, (Object) parts);
        Object offset = util.getMethod("getQueueOffset", String[].class).invoke(null, (Object) parts);
        Object header = header("AckMessageRequestHeader", Map.of("ConsumerGroup", group, "Topic", real, "QueueId", queue,
            "Offset", offset, "ExtraInfo", handle));
        CompletableFuture<Object> done = new CompletableFuture<>();
        for (Method call : MQClientAPIImpl.class.getMethods()) {
            if (call.getName().equals("ackMessageAsync") && call.getParameterCount() == 4) {
                call.invoke(api, address, (long) Env.API_TIMEOUT_MS, callback("AckCallback", done), header);
            }
        }
        Object result = done.get(Env.API_TIMEOUT_MS, TimeUnit.MILLISECONDS);
        Failure.equal(String.valueOf(method(result.getClass(), "getStatus").invoke(result)), "OK",
            "answer to an acknowledgement");
    }
}
