// Golden bytes from RocketMQ's own classes.
//
//   javac -cp 'LIB/*' Golden.java
//   java -cp 'LIB/*:.' Golden write > golden.txt              the fixture of golden_test.cc
//   proto_golden_test --print | java -cp 'LIB/*:.' Golden read       RocketMQ decodes what we encode
//
// LIB is the lib folder of Apache RocketMQ 5.5.0. Each line: name, tab, hex.
import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.rocketmq.common.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.remoting.protocol.*;
import org.apache.rocketmq.remoting.protocol.admin.*;
import org.apache.rocketmq.remoting.protocol.body.*;
import org.apache.rocketmq.remoting.protocol.header.*;
import org.apache.rocketmq.remoting.protocol.heartbeat.*;
import org.apache.rocketmq.remoting.protocol.route.*;
import org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingInfo;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

public class Golden {
    static final Map<String, byte[]> out = new LinkedHashMap<>();

    static void put(String name, byte[] b) { out.put(name, b); }
    static void put(String name, ByteBuffer b) {
        byte[] a = new byte[b.remaining()];
        b.get(a);
        put(name, a);
    }
    static void put(String name, RemotingSerializable s) { put(name, s.encode()); }

    static String hex(byte[] b) {
        StringBuilder s = new StringBuilder();
        for (byte x : b) s.append(String.format("%02x", x & 255));
        return s.toString();
    }
    static byte[] unhex(String s) {
        byte[] b = new byte[s.length() / 2];
        for (int i = 0; i < b.length; i++) b[i] = (byte) Integer.parseInt(s.substring(2 * i, 2 * i + 2), 16);
        return b;
    }

    static final String NASTY = "q\"b\\s\u0001\u0002\n\u00e9\u4e2d\ud83d\ude00";

    // ---------------------------------------------------------------------------------------- commands

    static SendMessageRequestHeaderV2 sendHeader() {
        SendMessageRequestHeader h = new SendMessageRequestHeader();
        h.setProducerGroup("pg");
        h.setTopic("TopicTest");
        h.setDefaultTopic("TBW102");
        h.setDefaultTopicQueueNums(4);
        h.setQueueId(3);
        h.setSysFlag(0);
        h.setBornTimestamp(1700000000000L);
        h.setFlag(7);
        h.setProperties("KEYS\u0001k1 k2\u0002TAGS\u0001" + NASTY.replaceAll("[\u0001\u0002]", "") + "\u0002");
        h.setReconsumeTimes(0);
        h.setUnitMode(false);
        h.setMaxReconsumeTimes(16);
        h.setBatch(false);
        h.setBrokerName("broker-a");
        return SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(h);
    }

    static RemotingCommand request(SerializeType type) {
        RemotingCommand c = RemotingCommand.createRequestCommand(RequestCode.SEND_MESSAGE_V2, sendHeader());
        c.setOpaque(77);
        c.setVersion(MQVersion.Version.V5_5_0.ordinal());
        c.setSerializeTypeCurrentRPC(type);
        c.setBody("the body".getBytes(StandardCharsets.UTF_8));
        return c;
    }

    static RemotingCommand response(SerializeType type) {
        RemotingCommand c = RemotingCommand.createResponseCommand(PullMessageResponseHeader.class);
        PullMessageResponseHeader h = (PullMessageResponseHeader) c.readCustomHeader();
        h.setSuggestWhichBrokerId(0L);
        h.setNextBeginOffset(12L);
        h.setMinOffset(-1L);
        h.setMaxOffset(Long.MAX_VALUE);
        c.setCode(19);
        c.setRemark("NO " + NASTY);
        c.setOpaque(Integer.MIN_VALUE);
        c.setVersion(MQVersion.Version.V5_5_0.ordinal());
        c.setSerializeTypeCurrentRPC(type);
        return c;
    }

    static void commands() {
        for (SerializeType t : SerializeType.values()) {
            put("request " + t, request(t).encode());
            put("response " + t, response(t).encode());
        }
    }

    // ----------------------------------------------------------------------------------------- records

    static MessageExt message(String born, String store, String topic) throws Exception {
        MessageExt m = new MessageExt();
        m.setTopic(topic);
        m.setBody("hello".getBytes(StandardCharsets.UTF_8));
        MessageAccessor.setProperties(m, new TreeMap<>(Map.of("TAGS", "TagA", "KEYS", "k1 k2")));
        m.setQueueId(3);
        m.setFlag(7);
        m.setQueueOffset(11);
        m.setCommitLogOffset(0x123456789aL);
        m.setBornTimestamp(1700000000000L);
        m.setBornHost(new InetSocketAddress(InetAddress.getByName(born), 40000));
        m.setStoreTimestamp(1700000000005L);
        m.setStoreHost(new InetSocketAddress(InetAddress.getByName(store), 10911));
        m.setReconsumeTimes(2);
        m.setPreparedTransactionOffset(99);
        if (born.contains(":")) m.setBornHostV6Flag();
        if (store.contains(":")) m.setStoreHostAddressV6Flag();
        m.setBodyCRC(UtilAll.crc32(m.getBody()));
        return m;
    }

    static void records() throws Exception {
        put("record v4", MessageDecoder.encode(message("10.1.2.3", "127.0.0.1", "TopicTest"), false));
        put("record v6", MessageDecoder.encode(message("2001:db8::1", "::1", "TopicTest"), false));
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Message m = new Message("T", ("body" + i).getBytes(StandardCharsets.UTF_8));
            MessageAccessor.setProperties(m, new TreeMap<>(Map.of("KEYS", "k" + i)));
            m.setFlag(i);
            batch.add(m);
        }
        put("batch", MessageDecoder.encodeMessages(batch));
        put("offset id", MessageDecoder.createMessageId(
            new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 10911), 0x1234).getBytes());
        put("offset id v6", MessageDecoder.createMessageId(
            new InetSocketAddress(InetAddress.getByName("2001:db8::7"), 1), Long.MAX_VALUE).getBytes());
        for (String s : new String[] {"TagA", NASTY, "\ufffd", "Aa", "BB"}) {
            put("hash " + hex(s.getBytes(StandardCharsets.UTF_8)),
                ByteBuffer.allocate(4).putInt(0, s.hashCode()).array());
        }
    }

    // ------------------------------------------------------------------------------------------ bodies

    static SubscriptionData subscription() throws Exception {
        SubscriptionData s = FilterAPI.buildSubscriptionData("T", "TagA || TagB");
        s.setSubVersion(1700000000000L);
        return s;
    }

    static HeartbeatData heartbeat() throws Exception {
        HeartbeatData h = new HeartbeatData();
        h.setClientID("10.0.0.1@1#2");
        ProducerData p = new ProducerData();
        p.setGroupName("pg");
        h.getProducerDataSet().add(p);
        ConsumerData c = new ConsumerData();
        c.setGroupName("cg");
        c.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
        c.setMessageModel(MessageModel.CLUSTERING);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.getSubscriptionDataSet().add(subscription());
        h.getConsumerDataSet().add(c);
        return h;
    }

    static TopicConfig topic(String name) {
        TopicConfig c = new TopicConfig(name, 4, 8, 6);
        c.getAttributes().put("+message.type", "FIFO");
        return c;
    }

    static DataVersion version() {
        DataVersion v = new DataVersion();
        v.setTimestamp(1700000000000L);
        v.setStateVersion(2);
        v.getCounter().set(5);
        return v;
    }

    static RegisterBrokerBody register() {
        RegisterBrokerBody b = new RegisterBrokerBody();
        TopicConfigAndMappingSerializeWrapper w = b.getTopicConfigSerializeWrapper();
        w.setDataVersion(version());
        w.getMappingDataVersion().setTimestamp(1700000000001L);
        for (String n : new String[] {"T", "U"}) w.getTopicConfigTable().put(n, topic(n));
        TopicQueueMappingInfo info = new TopicQueueMappingInfo("S", 2, "broker-a", 1);
        w.getTopicQueueMappingInfoMap().put("S", info);
        b.getFilterServerList().add("f:1");
        return b;
    }

    static void bodies() throws Exception {
        put("heartbeat", heartbeat());
        put("register plain", register().encode(false));
        put("register compressed", register().encode(true));
        TopicRouteData r = new TopicRouteData();
        QueueData q = new QueueData();
        q.setBrokerName("broker-a");
        q.setReadQueueNums(4);
        q.setWriteQueueNums(8);
        q.setPerm(6);
        r.getQueueDatas().add(q);
        HashMap<Long, String> addrs = new HashMap<>(Map.of(0L, "10.0.0.1:10911", 1L, "10.0.0.2:10911"));
        BrokerData b = new BrokerData("DefaultCluster", "broker-a", addrs);
        r.getBrokerDatas().add(b);
        put("route", r);
        put("route strict", r.encode(JSONWriter.Feature.BrowserCompatible, JSONWriter.Feature.MapSortField));
        ClusterInfo ci = new ClusterInfo();
        ci.setBrokerAddrTable(new HashMap<>(Map.of("broker-a", b)));
        ci.setClusterAddrTable(new HashMap<>(Map.of("DefaultCluster", new HashSet<>(Set.of("broker-a")))));
        put("cluster", ci);
        TopicList tl = new TopicList();
        tl.setTopicList(new HashSet<>(Set.of("T")));
        put("topic list", tl);
        SubscriptionGroupConfig g = new SubscriptionGroupConfig();
        g.setGroupName("g");
        put("group", JSON.toJSONString(g).getBytes(StandardCharsets.UTF_8));
        SubscriptionGroupWrapper gw = new SubscriptionGroupWrapper();
        gw.setDataVersion(version());
        gw.getSubscriptionGroupTable().put("g", g);
        put("groups", gw);
        TopicConfigSerializeWrapper tw = new TopicConfigSerializeWrapper();
        tw.setDataVersion(version());
        tw.getTopicConfigTable().put("T", topic("T"));
        put("topics", tw);
        put("topics pretty", tw.toJson(true).getBytes(StandardCharsets.UTF_8));
        queueTables();
        lists();
    }

    static void queueTables() throws Exception {
        MessageQueue mq = new MessageQueue("T", "broker-a", 0);
        TopicStatsTable ts = new TopicStatsTable();
        TopicOffset to = new TopicOffset();
        to.setMinOffset(1);
        to.setMaxOffset(5);
        to.setLastUpdateTimestamp(9);
        ts.getOffsetTable().put(mq, to);
        put("topic stats", ts);
        ConsumeStats cs = new ConsumeStats();
        OffsetWrapper ow = new OffsetWrapper();
        ow.setBrokerOffset(10);
        ow.setConsumerOffset(5);
        ow.setPullOffset(6);
        ow.setLastTimestamp(7);
        cs.getOffsetTable().put(mq, ow);
        cs.setConsumeTps(1.5);
        put("consume stats", cs);
        ResetOffsetBody ro = new ResetOffsetBody();
        ro.setOffsetTable(new HashMap<>(Map.of(mq, 4L)));
        put("reset offset", ro);
        GetConsumerStatusBody st = new GetConsumerStatusBody();
        st.setMessageQueueTable(new HashMap<>(Map.of(mq, 4L)));
        put("consumer status", st);
    }

    static void lists() throws Exception {
        MessageQueue mq = new MessageQueue("T", "broker-a", 0);
        LockBatchRequestBody lr = new LockBatchRequestBody();
        lr.setClientId("c");
        lr.setConsumerGroup("g");
        lr.getMqSet().add(mq);
        put("lock", lr);
        LockBatchResponseBody la = new LockBatchResponseBody();
        la.setLockOKMQSet(new HashSet<>(Set.of(mq)));
        put("locked", la);
        GetConsumerListByGroupResponseBody cl = new GetConsumerListByGroupResponseBody();
        cl.setConsumerIdList(List.of("a", "b"));
        put("consumer list", cl);
        ConsumerConnection cc = new ConsumerConnection();
        Connection c = new Connection();
        c.setClientAddr("1.2.3.4:5");
        c.setClientId("id");
        c.setLanguage(LanguageCode.GO);
        c.setVersion(317);
        cc.getConnectionSet().add(c);
        cc.getSubscriptionTable().put("T", subscription());
        cc.setConsumeType(ConsumeType.CONSUME_ACTIVELY);
        cc.setMessageModel(MessageModel.BROADCASTING);
        cc.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP);
        put("consumer connection", cc);
        KVTable kv = new KVTable();
        kv.setTable(new HashMap<>(Map.of("k", "v" + NASTY)));
        put("kv", kv);
        GroupList gl = new GroupList();
        gl.setGroupList(new HashSet<>(Set.of("g")));
        put("group list", gl);
    }

    static void all() throws Exception {
        commands();
        records();
        bodies();
    }

    // ----------------------------------------------------------------------------------------- reading

    static int wrong = 0;

    static void same(String name, Object got, Object expected) {
        if (!Objects.equals(got, expected)) {
            System.out.println("WRONG " + name + ": got " + got + ", expected " + expected);
            wrong++;
        }
    }

    static void sameCommand(String name, byte[] b, RemotingCommand e) throws Exception {
        ByteBuffer frame = ByteBuffer.wrap(b);
        frame.getInt();
        RemotingCommand c = RemotingCommand.decode(frame);
        e.makeCustomHeaderToNet();
        same(name + " code", c.getCode(), e.getCode());
        same(name + " opaque", c.getOpaque(), e.getOpaque());
        same(name + " flag", c.getFlag(), e.getFlag());
        same(name + " version", c.getVersion(), e.getVersion());
        same(name + " remark", c.getRemark(), e.getRemark());
        same(name + " type", c.getSerializeTypeCurrentRPC(), e.getSerializeTypeCurrentRPC());
        same(name + " ext", new TreeMap<>(c.getExtFields()), new TreeMap<>(e.getExtFields()));
        same(name + " body", c.getBody() == null ? 0 : c.getBody().length, e.getBody() == null ? 0 : e.getBody().length);
    }

    static void sameRecord(String name, byte[] b, MessageExt e) throws Exception {
        MessageExt m = MessageDecoder.decode(ByteBuffer.wrap(b), true, false);
        same(name, m == null ? null : m.getTopic() + new TreeMap<>(m.getProperties()) + m.getQueueId() + m.getCommitLogOffset()
            + m.getQueueOffset() + m.getBornHost() + m.getStoreHost() + m.getStoreTimestamp() + m.getBornTimestamp()
            + m.getReconsumeTimes() + m.getPreparedTransactionOffset() + new String(m.getBody()) + m.getFlag(),
            e.getTopic() + new TreeMap<>(e.getProperties()) + e.getQueueId() + e.getCommitLogOffset()
            + e.getQueueOffset() + e.getBornHost() + e.getStoreHost() + e.getStoreTimestamp() + e.getBornTimestamp()
            + e.getReconsumeTimes() + e.getPreparedTransactionOffset() + new String(e.getBody()) + e.getFlag());
    }

    static void read(String name, byte[] b) throws Exception {
        if (name.startsWith("request ")) {
            sameCommand(name, b, request(SerializeType.valueOf(name.substring(8))));
        } else if (name.startsWith("response ")) {
            sameCommand(name, b, response(SerializeType.valueOf(name.substring(9))));
        } else if (name.equals("record v4")) {
            sameRecord(name, b, message("10.1.2.3", "127.0.0.1", "TopicTest"));
        } else if (name.equals("record v6")) {
            sameRecord(name, b, message("2001:db8::1", "::1", "TopicTest"));
        } else if (name.equals("record long")) {
            sameRecord(name, b, message("10.1.2.3", "127.0.0.1", "%RETRY%" + "g".repeat(200)));
        } else if (name.startsWith("register ")) {
            RegisterBrokerBody r = RegisterBrokerBody.decode(b, name.endsWith("compressed"), MQVersion.Version.V5_5_0);
            RegisterBrokerBody e = register();
            same(name, r.getTopicConfigSerializeWrapper().getTopicConfigTable(),
                e.getTopicConfigSerializeWrapper().getTopicConfigTable());
            same(name, r.getTopicConfigSerializeWrapper().getDataVersion(), version());
            same(name, r.getFilterServerList(), e.getFilterServerList());
            same(name, r.getTopicConfigSerializeWrapper().getTopicQueueMappingInfoMap().keySet(), Set.of("S"));
        } else {
            readBody(name, b);
        }
    }

    // A body that RocketMQ decodes and encodes again must be what it encodes itself.
    static void readBody(String name, byte[] b) throws Exception {
        Map<String, Class<?>> types = new HashMap<>();
        types.put("heartbeat", HeartbeatData.class);
        types.put("route", TopicRouteData.class);
        types.put("route strict", TopicRouteData.class);
        types.put("cluster", ClusterInfo.class);
        types.put("topic stats", TopicStatsTable.class);
        types.put("consume stats", ConsumeStats.class);
        types.put("reset offset", ResetOffsetBody.class);
        types.put("consumer status", GetConsumerStatusBody.class);
        types.put("groups", SubscriptionGroupWrapper.class);
        types.put("topics", TopicConfigSerializeWrapper.class);
        types.put("topics pretty", TopicConfigSerializeWrapper.class);
        types.put("lock", LockBatchRequestBody.class);
        types.put("locked", LockBatchResponseBody.class);
        types.put("consumer list", GetConsumerListByGroupResponseBody.class);
        types.put("consumer connection", ConsumerConnection.class);
        types.put("kv", KVTable.class);
        if (!types.containsKey(name)) {
            same(name, hex(b), hex(out.get(name)));
            return;
        }
        Object o = RemotingSerializable.decode(b, types.get(name));
        String plain = name.equals("route strict") ? "route" : name.equals("topics pretty") ? "topics" : name;
        same(name, ((RemotingSerializable) o).toJson(), new String(out.get(plain), StandardCharsets.UTF_8));
    }

    public static void main(String[] args) throws Exception {
        all();
        if (args[0].equals("write")) {
            out.forEach((name, b) -> System.out.println(name + "\t" + hex(b)));
            return;
        }
        int count = 0;
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) {
            String[] line = in.nextLine().split("\t", -1);
            read(line[0], unhex(line[1]));
            count++;
        }
        System.out.println(count + " read, " + wrong + " wrong");
        System.exit(wrong == 0 && count > 0 ? 0 : 1);
    }
}
