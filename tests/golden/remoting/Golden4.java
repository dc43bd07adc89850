import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.filter.FilterAPI;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.common.protocol.body.*;
import org.apache.rocketmq.common.protocol.header.*;
import org.apache.rocketmq.common.protocol.heartbeat.*;
import org.apache.rocketmq.common.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.remoting.protocol.*;

/** Writes what the classes of the 4.x clients encode: frames, batches and bodies. See README.md. */
public class Golden4 {
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

    static void frames(PrintStream out, int version) throws Exception {
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
        RemotingCommand send = RemotingCommand.createRequestCommand(310, SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(header));
        send.setOpaque(41);
        send.setVersion(version);
        send.setBody("hello body".getBytes());
        frame(out, "send-v2", send);
        PullMessageRequestHeader pull = new PullMessageRequestHeader();
        pull.setConsumerGroup("group-c");
        pull.setTopic("orders");
        pull.setQueueId(2);
        pull.setQueueOffset(99L);
        pull.setMaxMsgNums(32);
        pull.setSysFlag(6);
        pull.setCommitOffset(98L);
        pull.setSuspendTimeoutMillis(15000L);
        pull.setSubscription("TagA || TagB");
        pull.setSubVersion(1700000000000L);
        pull.setExpressionType("TAG");
        RemotingCommand request = RemotingCommand.createRequestCommand(11, pull);
        request.setOpaque(Integer.MAX_VALUE);
        request.setVersion(version);
        frame(out, "pull", request);
    }

    static void bodies(PrintStream out) throws Exception {
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
        // Since 4.9 without the group.
        SubscriptionData data = FilterAPI.build("orders", "Aa || TagB", "TAG");
        data.setSubVersion(1700000000000L);
        consumer.getSubscriptionDataSet().add(data);
        heartbeat.getConsumerDataSet().add(consumer);
        out.println("HeartbeatData\t" + RemotingSerializable.toJson(heartbeat, false));
        CheckClientRequestBody check = new CheckClientRequestBody();
        check.setClientId("127.0.0.1@1#2");
        check.setGroup("group-c");
        SubscriptionData sql = FilterAPI.build("orders", "a > 5 AND b = 'x'", "SQL92");
        sql.setSubVersion(5);
        check.setSubscriptionData(sql);
        out.println("CheckClientRequestBody\t" + RemotingSerializable.toJson(check, false));
        LockBatchRequestBody lock = new LockBatchRequestBody();
        lock.setConsumerGroup("group-c");
        lock.setClientId("127.0.0.1@1#2");
        lock.getMqSet().add(new MessageQueue("orders", "broker-a", 3));
        out.println("LockBatchRequestBody\t" + RemotingSerializable.toJson(lock, false));
        SubscriptionGroupConfig group = new SubscriptionGroupConfig();
        group.setGroupName("group-c");
        out.println("SubscriptionGroupConfig\t" + RemotingSerializable.toJson(group, false));
    }

    static void batches(PrintStream out) throws Exception {
        List<Message> messages = new ArrayList<>();
        Message first = new Message("orders", "TagA", "k1 k2", "first".getBytes());
        first.setFlag(9);
        messages.add(first);
        messages.add(new Message("orders", "second \u00e9".getBytes(StandardCharsets.UTF_8)));
        out.println("two\t" + hex(MessageDecoder.encodeMessages(messages)));
    }

    public static void main(String[] args) throws Exception {
        Path dir = Paths.get(args[0]);
        Files.createDirectories(dir);
        int version = Integer.parseInt(args[1]);
        try (PrintStream out = new PrintStream(Files.newOutputStream(dir.resolve("frames.tsv")), false, "UTF-8")) { frames(out, version); }
        try (PrintStream out = new PrintStream(Files.newOutputStream(dir.resolve("client-bodies.tsv")), false, "UTF-8")) { bodies(out); }
        try (PrintStream out = new PrintStream(Files.newOutputStream(dir.resolve("batches.tsv")), false, "UTF-8")) { batches(out); }
        System.exit(0);
    }
}
