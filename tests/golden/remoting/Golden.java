import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.compression.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.common.topic.TopicValidator;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.*;
import org.apache.rocketmq.remoting.protocol.admin.*;
import org.apache.rocketmq.remoting.protocol.body.*;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.remoting.protocol.header.*;
import org.apache.rocketmq.remoting.protocol.heartbeat.*;
import org.apache.rocketmq.remoting.protocol.route.*;
import org.apache.rocketmq.remoting.protocol.statictopic.*;
import org.apache.rocketmq.remoting.protocol.subscription.*;

/** Writes what the 5.5.0 classes encode, one tab-separated file per kind. See README.md. */
public class Golden extends Client {

    static String hex(String text) { return hex(text.getBytes(StandardCharsets.UTF_8)); }

    // ---- frames

    static RemotingCommand request(int code, CommandCustomHeader header, int opaque) {
        RemotingCommand command = RemotingCommand.createRequestCommand(code, header);
        command.setOpaque(opaque);
        command.setVersion(513);
        return command;
    }

    static void frames(PrintStream out) throws Exception {
        SendMessageRequestHeader send = send();
        send.setBrokerName("broker-a");
        RemotingCommand v2 = request(310, SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(send), 41);
        v2.setBody("hello body".getBytes());
        frame(out, "send-v2", v2);
        RemotingCommand v1 = request(10, send, 42);
        v1.setBody("hello body".getBytes());
        frame(out, "send-v1", v1);
        PullMessageRequestHeader pull = pull();
        pull.setMaxMsgBytes(Integer.MAX_VALUE);
        pull.setBrokerName("broker-a");
        frame(out, "pull", request(11, pull, Integer.MAX_VALUE));
        RemotingCommand oneWay = request(35, null, -5);
        oneWay.markOnewayRPC();
        frame(out, "one-way", oneWay);
        RemotingCommand answer = RemotingCommand.createResponseCommand(17, "No topic route info \u4e2d \ud83d\ude00\nsecond\u0001");
        answer.setOpaque(7);
        answer.setVersion(513);
        answer.setLanguage(LanguageCode.JAVA);
        frame(out, "answer", answer);
        HashMap<String, String> fields = new HashMap<>();
        fields.put("empty", "");
        RemotingCommand empty = request(34, null, 1);
        empty.setExtFields(fields);
        frame(out, "empty-value", empty);
    }

    // ---- header errors

    static void headerErrors(PrintStream out) throws Exception {
        String[][] cases = {
            {"11", "consumerGroup=g,topic=t,queueOffset=0,maxMsgNums=1,sysFlag=0,commitOffset=0,suspendTimeoutMillis=0,subVersion=0"},
            {"11", "consumerGroup=g,topic=t,queueId=abc,queueOffset=0,maxMsgNums=1,sysFlag=0,commitOffset=0,suspendTimeoutMillis=0,subVersion=0"},
            {"11", "consumerGroup=g,topic=t,queueId=2147483648,queueOffset=0,maxMsgNums=1,sysFlag=0,commitOffset=0,suspendTimeoutMillis=0,subVersion=0"},
            {"11", ""},
            {"31", "topic=t"},
            {"31", "topic=t,queueId=abc"},
            {"31", "queueId=1"},
            {"31", ""},
        };
        for (String[] row : cases) {
            RemotingCommand command = request(Integer.parseInt(row[0]), null, 1);
            HashMap<String, String> fields = new HashMap<>();
            for (String part : row[1].split(",")) {
                String[] pair = part.split("=");
                if (pair.length == 2) fields.put(pair[0], pair[1]);
            }
            if (!fields.isEmpty()) command.setExtFields(fields);
            String result;
            try {
                Object header = row[0].equals("11")
                    ? command.decodeCommandCustomHeader(PullMessageRequestHeader.class)
                    : command.decodeCommandCustomHeader(GetMinOffsetRequestHeader.class);
                result = "decoded " + header;
            } catch (Throwable error) {
                result = error.toString();
            }
            out.println(row[0] + "\t" + row[1] + "\t" + result.replace("\n", " "));
        }
    }

    // ---- messages

    static MessageExt message(String topic, String born, String store) throws Exception {
        MessageExt message = new MessageExt();
        message.setTopic(topic);
        message.setQueueId(3);
        message.setFlag(7);
        message.setQueueOffset(1234567890123L);
        message.setCommitLogOffset((5L << 40) | 1234567890L);
        message.setSysFlag(0);
        message.setBornTimestamp(1700000000123L);
        message.setBornHost(new InetSocketAddress(InetAddress.getByName(born), 54321));
        message.setStoreTimestamp(1700000000456L);
        message.setStoreHost(new InetSocketAddress(InetAddress.getByName(store), 10911));
        if (born.indexOf(':') >= 0) message.setBornHostV6Flag();
        if (store.indexOf(':') >= 0) message.setStoreHostAddressV6Flag();
        message.setReconsumeTimes(2);
        message.setPreparedTransactionOffset(0);
        message.setBody("body \u00fc".getBytes(StandardCharsets.UTF_8));
        message.setBodyCRC(org.apache.rocketmq.common.UtilAll.crc32(message.getBody()) & 0x7FFFFFFF);
        message.putUserProperty("name", "value");
        message.setTags("TagA");
        return message;
    }

    static String repeat(String text, int times) {
        StringBuilder all = new StringBuilder();
        for (int i = 0; i < times; i++) all.append(text);
        return all.toString();
    }

    static void messages(PrintStream out) throws Exception {
        String[][] cases = {
            {"v4", "orders", "10.1.2.3", "127.0.0.1"},
            {"v6-store", "orders", "10.1.2.3", "::1"},
            {"v6-both", "orders", "fe80::1", "::1"},
            {"topic-127", repeat("t", 127), "10.1.2.3", "127.0.0.1"},
        };
        for (String[] row : cases) {
            MessageExt message = message(row[1], row[2], row[3]);
            byte[] bytes = MessageDecoder.encode(message, false);
            MessageExt back = MessageDecoder.decode(ByteBuffer.wrap(bytes));
            out.println(row[0] + "\t" + hex(bytes) + "\t" + back.getMsgId() + "\t"
                + hex(MessageDecoder.messageProperties2String(message.getProperties())));
        }
    }

    /** The form with two bytes for the topic's length comes from the store's encoder, before offsets are known. */
    static void stored(PrintStream out) throws Exception {
        for (int length : new int[] {127, 128, 255}) {
            MessageExtBrokerInner inner = new MessageExtBrokerInner();
            MessageExt message = message("%RETRY%" + repeat("g", length - 7), "10.1.2.3", "127.0.0.1");
            inner.setTopic(message.getTopic());
            inner.setVersion(org.apache.rocketmq.common.message.MessageVersion.valueOfMagicCode(
                length > 127 ? MessageDecoder.MESSAGE_MAGIC_CODE_V2 : MessageDecoder.MESSAGE_MAGIC_CODE));
            inner.setQueueId(3);
            inner.setFlag(7);
            inner.setBornTimestamp(message.getBornTimestamp());
            inner.setBornHost(message.getBornHost());
            inner.setStoreTimestamp(message.getStoreTimestamp());
            inner.setStoreHost(message.getStoreHost());
            inner.setReconsumeTimes(2);
            inner.setBody(message.getBody());
            inner.setBodyCRC(message.getBodyCRC());
            inner.setPropertiesString("TAGS\u0001TagA\u0002");
            org.apache.rocketmq.store.MessageExtEncoder encoder = new org.apache.rocketmq.store.MessageExtEncoder(
                4 * 1024 * 1024, new org.apache.rocketmq.store.config.MessageStoreConfig());
            encoder.encode(inner);
            ByteBuffer buffer = encoder.getEncoderBuffer();
            byte[] stored = new byte[buffer.getInt(buffer.position())];
            buffer.get(stored);
            out.println("stored-" + length + "\t" + hex(stored));
        }
    }

    // ---- batches

    static void batches(PrintStream out) throws Exception {
        List<Message> messages = messages();
        Message third = new Message("orders", "", "", "third".getBytes());
        third.putUserProperty("a", "b");
        messages.add(third);
        out.println("three\t" + hex(MessageDecoder.encodeMessages(messages)));
    }

    // ---- compressed bodies

    static void compressed(PrintStream out) throws Exception {
        byte[] body = repeat("0123456789abcdef", 64).getBytes();
        for (CompressionType type : CompressionType.values()) {
            byte[] packed = CompressorFactory.getCompressor(type).compress(body, 5);
            out.println(type + "\t" + type.getValue() + "\t" + (1 | type.getCompressionFlag()) + "\t" + hex(packed));
        }
    }

    // ---- text rules

    static final String[] ODD = {
        "", "a", "TagA", "Aa", "BB", "AaAa", "BBBB", "\u4e2d\u6587", "\ud83d\ude00", "x\ud83d\ude00y", "\u00fc\u00df",
        "polygenelubricants", repeat("\u4e2d", 300), " lead", "\ufffd", "0", "-1",
    };

    static void hashes(PrintStream out) {
        for (String text : ODD) out.println(hex(text) + "\t" + text.hashCode());
    }

    static void topics(PrintStream out) {
        List<String> names = new ArrayList<>(Arrays.asList("", " ", "\t", "a", "a.b", "a b", "%RETRY%g", "a|b", "\u4e2d", "TBW102",
            "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC",
            "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "BenchmarkTest", "rmq_sys_x", "RMQ_SYS_TRACE_TOPIC", "CHECKPOINT_TOPIC",
            "rmq_sys_wheel_timer", "a/b", "a+b", "a#b", "%DLQ%g", "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"));
        for (int length : new int[] {119, 120, 121, 127, 128, 249, 255, 256}) {
            names.add(repeat("t", length));
            names.add("%RETRY%" + repeat("t", Math.max(0, length - 7)));
        }
        for (String name : names) {
            TopicValidator.ValidateResult topic = TopicValidator.validateTopic(name);
            TopicValidator.ValidateResult group = TopicValidator.validateGroup(name);
            out.println(hex(name) + "\t" + topic.isValid() + "\t" + topic.getRemark() + "\t" + group.isValid() + "\t" + group.getRemark()
                + "\t" + TopicValidator.isSystemTopic(name) + "\t" + TopicValidator.isNotAllowedSendTopic(name));
        }
    }

    static void filters(PrintStream out) {
        String[] expressions = {null, "", "*", " * ", "A", "A||B", " A || B ", "A || || B", "||", " || ", "A||A", "A|B", "|", "A||", "||A", "\u3000A\u3000",
            "Aa || BB", "A\u0000||B", "   ", "* || A"};
        for (String expression : expressions) {
            String result;
            try {
                SubscriptionData data = FilterAPI.buildSubscriptionData("t", expression);
                List<String> tags = new ArrayList<>();
                for (String tag : new TreeSet<>(data.getTagsSet())) tags.add(hex(tag));
                result = hex(data.getSubString()) + "\t" + String.join(",", tags) + "\t" + new TreeSet<>(data.getCodeSet()).toString().replaceAll("[\\[\\] ]", "");
            } catch (Exception error) {
                result = "error\t" + error.getMessage() + "\t";
            }
            out.println((expression == null ? "null" : "x" + hex(expression)) + "\t" + result);
        }
    }

    static void properties(PrintStream out) {
        String[] texts = {"", "a\u0001b\u0002", "a\u0001b", "a\u0001b\u0002c\u0001d", "a\u0001\u0002b\u0001c", "\u0001b\u0002", "ab\u0002c\u0001d\u0002",
            "a\u0001b\u0001c\u0002", "a\u0001b\u0002\u0002c\u0001d", "a\u0001b\u0002a\u0001c\u0002", "\u0002", "\u0001", "a", "a\u0001\u0001\u0002", "\u4e2d\u0001\u00fc\u0002",
            "ab\u0002c\u0001", "abc\u0002x\u0001y"};
        for (String text : texts) {
            StringBuilder map = new StringBuilder();
            for (Map.Entry<String, String> entry : new TreeMap<>(MessageDecoder.string2messageProperties(text)).entrySet()) {
                map.append(hex(entry.getKey())).append('=').append(hex(entry.getValue())).append(',');
            }
            out.println(hex(text) + "\t" + map);
        }
    }

    static void ids(PrintStream out) throws Exception {
        for (String host : new String[] {"127.0.0.1", "10.1.2.3", "::1"}) {
            String id = MessageDecoder.createMessageId(new InetSocketAddress(InetAddress.getByName(host), 10911), (5L << 40) | 77);
            out.println(host + "\t10911\t" + ((5L << 40) | 77) + "\t" + id);
        }
    }

    // ---- bodies

    static BrokerData broker() {
        BrokerData broker = new BrokerData();
        broker.setCluster("DefaultCluster");
        broker.setBrokerName("broker-a");
        HashMap<Long, String> addresses = new HashMap<>();
        addresses.put(0L, "127.0.0.1:10911");
        broker.setBrokerAddrs(addresses);
        return broker;
    }

    static Connection connection() {
        Connection connection = new Connection();
        connection.setClientId("127.0.0.1@1");
        connection.setClientAddr("127.0.0.1:50000");
        connection.setLanguage(LanguageCode.JAVA);
        connection.setVersion(513);
        return connection;
    }

    static void clientBodies(PrintStream out) throws Exception {
        body(out, "HeartbeatData", heartbeat());
        CheckClientRequestBody check = check();
        check.setNamespace("");
        body(out, "CheckClientRequestBody", check);
        body(out, "LockBatchRequestBody", lock());
        UnlockBatchRequestBody unlock = new UnlockBatchRequestBody();
        unlock.setConsumerGroup("group-c");
        unlock.setClientId("127.0.0.1@1#2");
        unlock.getMqSet().add(new MessageQueue("orders", "broker-a", 3));
        body(out, "UnlockBatchRequestBody", unlock);
        body(out, "SubscriptionGroupConfig", group());
        CreateTopicListRequestBody create = new CreateTopicListRequestBody();
        create.setTopicConfigList(new ArrayList<>(List.of(new TopicConfig("orders", 4, 4, 6))));
        body(out, "CreateTopicListRequestBody", create);
    }

    static void serverBodies(PrintStream out) throws Exception {
        TopicRouteData route = new TopicRouteData();
        QueueData queue = new QueueData();
        queue.setBrokerName("broker-a");
        queue.setReadQueueNums(4);
        queue.setWriteQueueNums(4);
        queue.setPerm(6);
        route.setQueueDatas(new ArrayList<>(List.of(queue)));
        route.setBrokerDatas(new ArrayList<>(List.of(broker())));
        route.setFilterServerTable(new HashMap<>());
        body(out, "TopicRouteData", route);
        ClusterInfo cluster = new ClusterInfo();
        cluster.setBrokerAddrTable(new HashMap<>(Map.of("broker-a", broker())));
        cluster.setClusterAddrTable(new HashMap<>(Map.of("DefaultCluster", new HashSet<>(Set.of("broker-a")))));
        body(out, "ClusterInfo", cluster);
        TopicList topics = new TopicList();
        topics.setTopicList(new HashSet<>(Set.of("orders")));
        body(out, "TopicList", topics);
        KVTable table = new KVTable();
        table.setTable(new HashMap<>(Map.of("brokerVersionDesc", "V5_5_0")));
        body(out, "KVTable", table);
        GetConsumerListByGroupResponseBody members = new GetConsumerListByGroupResponseBody();
        members.setConsumerIdList(new ArrayList<>(List.of("127.0.0.1@1", "127.0.0.1@2")));
        body(out, "GetConsumerListByGroupResponseBody", members);
        ConsumerConnection consumers = new ConsumerConnection();
        consumers.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
        consumers.setMessageModel(MessageModel.CLUSTERING);
        consumers.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        consumers.getConnectionSet().add(connection());
        consumers.getSubscriptionTable().put("orders", subscription("*", "TAG", 1700000000000L));
        body(out, "ConsumerConnection", consumers);
        ProducerConnection producers = new ProducerConnection();
        producers.getConnectionSet().add(connection());
        body(out, "ProducerConnection", producers);
        ConsumeStats stats = new ConsumeStats();
        OffsetWrapper wrapper = new OffsetWrapper();
        wrapper.setBrokerOffset(10);
        wrapper.setConsumerOffset(7);
        wrapper.setPullOffset(8);
        wrapper.setLastTimestamp(1700000000000L);
        stats.setOffsetTable(new HashMap<>(Map.of(new MessageQueue("orders", "broker-a", 3), wrapper)));
        body(out, "ConsumeStats", stats);
        TopicStatsTable status = new TopicStatsTable();
        TopicOffset offset = new TopicOffset();
        offset.setMinOffset(1);
        offset.setMaxOffset(10);
        offset.setLastUpdateTimestamp(1700000000000L);
        status.setOffsetTable(new HashMap<>(Map.of(new MessageQueue("orders", "broker-a", 3), offset)));
        body(out, "TopicStatsTable", status);
        TopicConfig config = new TopicConfig("orders", 4, 4, 6);
        body(out, "TopicConfig", config);
        config.setAttributes(new HashMap<>(Map.of("message.type", "FIFO")));
        body(out, "TopicConfig-attributes", config);
        body(out, "TopicConfigAndQueueMapping", new TopicConfigAndQueueMapping(new TopicConfig("orders", 4, 4, 6), null));
        TopicQueueMappingDetail detail = new TopicQueueMappingDetail("orders", 4, "broker-a", 1);
        body(out, "TopicConfigAndQueueMapping-detail", new TopicConfigAndQueueMapping(new TopicConfig("orders", 4, 4, 6), detail));
        GroupList groups = new GroupList();
        groups.setGroupList(new HashSet<>(Set.of("group-c")));
        body(out, "GroupList", groups);
        SubscriptionGroupConfig group = group();
        body(out, "SubscriptionGroupConfig", group);
        LockBatchResponseBody locked = new LockBatchResponseBody();
        locked.setLockOKMQSet(new HashSet<>(Set.of(new MessageQueue("orders", "broker-a", 3))));
        body(out, "LockBatchResponseBody", locked);
        TopicConfigSerializeWrapper wrapperBody = new TopicConfigSerializeWrapper();
        wrapperBody.getTopicConfigTable().put("orders", new TopicConfig("orders", 4, 4, 6));
        wrapperBody.getDataVersion().setTimestamp(5L);
        body(out, "TopicConfigSerializeWrapper", wrapperBody);
        SubscriptionGroupWrapper groupWrapper = new SubscriptionGroupWrapper();
        groupWrapper.getSubscriptionGroupTable().put("group-c", group);
        groupWrapper.getDataVersion().setTimestamp(5L);
        body(out, "SubscriptionGroupWrapper", groupWrapper);
        KVTable odd = new KVTable();
        odd.setTable(new HashMap<>(Map.of("odd", "q\" b\\ s/ nl\n tab\t c\u0001 del\u007f ls\u2028 \u4e2d \ud83d\ude00 <>&'")));
        body(out, "KVTable-odd", odd);
        TopicStatsTable tps = new TopicStatsTable();
        tps.setTopicPutTps(12.5);
        body(out, "TopicStatsTable-empty", tps);
    }

    public static void main(String[] args) throws Exception {
        Path dir = Paths.get(args[0]);
        Files.createDirectories(dir);
        file(dir, "frames.tsv", Golden::frames);
        file(dir, "header-errors.tsv", Golden::headerErrors);
        file(dir, "messages.tsv", Golden::messages);
        file(dir, "stored.tsv", Golden::stored);
        file(dir, "batches.tsv", Golden::batches);
        file(dir, "compressed.tsv", Golden::compressed);
        file(dir, "hashes.tsv", Golden::hashes);
        file(dir, "topics.tsv", Golden::topics);
        file(dir, "filters.tsv", Golden::filters);
        file(dir, "properties.tsv", Golden::properties);
        file(dir, "ids.tsv", Golden::ids);
        file(dir, "client-bodies.tsv", Golden::clientBodies);
        file(dir, "server-bodies.tsv", Golden::serverBodies);
        System.exit(0);
    }
}
