import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.remoting.protocol.*;
import org.apache.rocketmq.remoting.protocol.body.*;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.remoting.protocol.header.*;
import org.apache.rocketmq.remoting.protocol.heartbeat.*;
import org.apache.rocketmq.remoting.protocol.subscription.*;

/** What clients of every version encode: frames, batches and bodies. See README.md. */
public class Client {
    interface Rows { void write(PrintStream out) throws Exception; }

    static void file(Path dir, String name, Rows rows) throws Exception {
        try (PrintStream out = new PrintStream(Files.newOutputStream(dir.resolve(name)), false, "UTF-8")) {
            rows.write(out);
        }
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte b : bytes) text.append(String.format("%02x", b));
        return text.toString();
    }

    static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    static void frame(PrintStream out, String name, RemotingCommand command) {
        for (SerializeType type : SerializeType.values()) {
            command.setSerializeTypeCurrentRPC(type);
            out.println(name + "-" + type + "\t" + hex(bytes(command.encode())));
        }
    }

    static SendMessageRequestHeader send() {
        SendMessageRequestHeader header = new SendMessageRequestHeader();
        header.setProducerGroup("group-p");
        header.setTopic("orders");
        header.setDefaultTopic("TBW102");
        header.setDefaultTopicQueueNums(4);
        header.setQueueId(3);
        header.setSysFlag(0);
        header.setBornTimestamp(1700000000123L);
        header.setFlag(7);
        Map<String, String> properties = new LinkedHashMap<>();
        properties.put("KEYS", "k1 k2");
        properties.put("UNIQ_KEY", "7F0000010000123456780000ABCD0001");
        properties.put("WAIT", "true");
        properties.put("TAGS", "TagA");
        properties.put("name", "gr\u00f6\u00dfe \"q\" \\ /");
        header.setProperties(MessageDecoder.messageProperties2String(properties));
        header.setReconsumeTimes(0);
        header.setUnitMode(false);
        header.setBatch(false);
        return header;
    }

    static PullMessageRequestHeader pull() {
        PullMessageRequestHeader header = new PullMessageRequestHeader();
        header.setConsumerGroup("group-c");
        header.setTopic("orders");
        header.setQueueId(2);
        header.setQueueOffset(99L);
        header.setMaxMsgNums(32);
        header.setSysFlag(6);
        header.setCommitOffset(98L);
        header.setSuspendTimeoutMillis(15000L);
        header.setSubscription("TagA || TagB");
        header.setSubVersion(1700000000000L);
        header.setExpressionType("TAG");
        return header;
    }

    static SubscriptionData subscription(String expression, String type, long version) throws Exception {
        SubscriptionData data = FilterAPI.build("orders", expression, type);
        data.setSubVersion(version);
        return data;
    }

    static HeartbeatData heartbeat() throws Exception {
        HeartbeatData heartbeat = new HeartbeatData();
        heartbeat.setClientID("127.0.0.1@1#2");
        ProducerData producer = new ProducerData();
        producer.setGroupName("group-p");
        heartbeat.getProducerDataSet().add(producer);
        ConsumerData consumer = new ConsumerData();
        consumer.setGroupName("group-c");
        consumer.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
        consumer.setMessageModel(MessageModel.CLUSTERING);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        consumer.getSubscriptionDataSet().add(subscription("Aa || TagB", "TAG", 1700000000000L));
        heartbeat.getConsumerDataSet().add(consumer);
        return heartbeat;
    }

    static CheckClientRequestBody check() throws Exception {
        CheckClientRequestBody check = new CheckClientRequestBody();
        check.setClientId("127.0.0.1@1#2");
        check.setGroup("group-c");
        check.setSubscriptionData(subscription("a > 5 AND b = 'x'", "SQL92", 5));
        return check;
    }

    static LockBatchRequestBody lock() {
        LockBatchRequestBody lock = new LockBatchRequestBody();
        lock.setConsumerGroup("group-c");
        lock.setClientId("127.0.0.1@1#2");
        lock.getMqSet().add(new MessageQueue("orders", "broker-a", 3));
        return lock;
    }

    static SubscriptionGroupConfig group() {
        SubscriptionGroupConfig group = new SubscriptionGroupConfig();
        group.setGroupName("group-c");
        return group;
    }

    static List<Message> messages() {
        List<Message> messages = new ArrayList<>();
        Message first = new Message("orders", "TagA", "k1 k2", "first".getBytes());
        first.setFlag(9);
        messages.add(first);
        messages.add(new Message("orders", "second \u00e9".getBytes(StandardCharsets.UTF_8)));
        return messages;
    }

    static void body(PrintStream out, String name, Object body) {
        out.println(name + "\t" + RemotingSerializable.toJson(body, false));
    }

    static void frames(PrintStream out, int version) throws Exception {
        RemotingCommand send = RemotingCommand.createRequestCommand(
            310, SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(send()));
        send.setOpaque(41);
        send.setVersion(version);
        send.setBody("hello body".getBytes());
        frame(out, "send-v2", send);
        RemotingCommand pull = RemotingCommand.createRequestCommand(11, pull());
        pull.setOpaque(Integer.MAX_VALUE);
        pull.setVersion(version);
        frame(out, "pull", pull);
    }

    static void bodies(PrintStream out) throws Exception {
        body(out, "HeartbeatData", heartbeat());
        body(out, "CheckClientRequestBody", check());
        body(out, "LockBatchRequestBody", lock());
        body(out, "SubscriptionGroupConfig", group());
    }

    public static void main(String[] args) throws Exception {
        Path dir = Paths.get(args[0]);
        Files.createDirectories(dir);
        file(dir, "frames.tsv", out -> frames(out, Integer.parseInt(args[1])));
        file(dir, "client-bodies.tsv", Client::bodies);
        file(dir, "batches.tsv", out -> out.println("two\t" + hex(MessageDecoder.encodeMessages(messages()))));
        System.exit(0);
    }
}
