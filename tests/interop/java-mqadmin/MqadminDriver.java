import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Many commands of mqadmin in one process, as starting one for each takes seconds. Standard input has a command a
 * line, its words separated by tabs: seconds that it may take, and mqadmin's words. What the command printed comes
 * out, then a line "\1END". Words that begin with @ are ours: a producer and a consumer that stay online.
 */
public final class MqadminDriver {
    private static final PrintStream OUT = System.out;

    private MqadminDriver() {
    }

    // The commands keep state between two calls; each call gets new ones.
    private static void forgetCommands() throws Exception {
        Field f = MQAdminStartup.class.getDeclaredField("SUB_COMMANDS");
        f.setAccessible(true);
        ((List<?>) f.get(null)).clear();
    }

    private static void produce(String namesrv, String group, String topic, int n) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer(group, true, null);     // with its trace
        p.setNamesrvAddr(namesrv);
        p.setSendMsgTimeout(20000);
        p.start();
        List<MessageQueue> queues = p.fetchPublishMessageQueues(topic);
        queues.sort(null);
        for (int i = 0; i < n; i++) {
            Message m = new Message(topic, i % 2 == 0 ? "even" : "odd", "key" + i,
                ("body " + i).getBytes(StandardCharsets.UTF_8));
            SendResult r = p.send(m, queues.get(i % queues.size()), 20000);
            System.out.println(r.getMsgId() + " " + r.getOffsetMsgId());
        }
    }

    private static void consume(String namesrv, String group, String topic, int n) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(namesrv);
        c.setInstanceName("driver");
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.setPersistConsumerOffsetInterval(500);
        c.subscribe(topic, "even || odd");
        CountDownLatch seen = new CountDownLatch(n);
        c.registerMessageListener((MessageListenerConcurrently) (msgs, context) -> {
            msgs.forEach(m -> seen.countDown());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        c.start();
        if (!seen.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException(seen.getCount() + " messages are missing");
        }
        Thread.sleep(1500);             // the offsets are committed
        System.out.println(c.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId());
    }

    private static void run(String[] words) {
        try {
            if (words[0].equals("@produce")) {
                produce(words[1], words[2], words[3], Integer.parseInt(words[4]));
            } else if (words[0].equals("@consume")) {
                consume(words[1], words[2], words[3], Integer.parseInt(words[4]));
            } else {
                forgetCommands();
                MQAdminStartup.main0(words[0].isEmpty() ? new String[0] : words, null);
            }
        } catch (Throwable t) {
            t.printStackTrace();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            PrintStream printed = new PrintStream(bytes, true, "UTF-8");
            System.setOut(printed);
            System.setErr(printed);
            Thread t = new Thread(() -> run(Arrays.copyOfRange(words, 1, words.length)), "command");
            t.setDaemon(true);
            t.start();
            t.join(TimeUnit.SECONDS.toMillis(Long.parseLong(words[0])));
            if (t.isAlive()) {          // one that goes on for ever
                t.interrupt();
                t.join(5000);
            }
            OUT.write(bytes.toByteArray());
            OUT.println("\n\1END");
            OUT.flush();
        }
        System.exit(0);
    }
}
