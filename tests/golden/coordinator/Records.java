import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.MessageFormatter;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocolCollection;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.OffsetAndMetadata;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.classic.ClassicGroupState;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupRegularExpressionKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupRegularExpressionValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMetadataValue;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.coordinator.group.generated.ShareGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.ShareGroupMetadataValue;
import org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter;
import org.apache.kafka.tools.consumer.OffsetsMessageFormatter;

/** Records of __consumer_offsets, written and shown by Kafka's own classes. See README.md. */
public class Records {
    static final HexFormat HEX = HexFormat.of();
    static final Uuid TOPIC_ID = new Uuid(0x0102030405060708L, 0x090a0b0c0d0e0f10L);

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) {
            try (PrintStream out = new PrintStream(args[1], StandardCharsets.UTF_8)) {
                byHelpers(out);
                byVersion(out);
                ofConsumers(out);
            }
        } else {
            show(Path.of(args[1]), System.out);
        }
    }

    /** What a 4.3.1 coordinator writes. */
    static void byHelpers(PrintStream out) {
        helper(out, "helper.offset", offset(42, OptionalInt.of(3), "note", OptionalLong.empty(), TOPIC_ID));
        helper(out, "helper.offset.plain", offset(0, OptionalInt.empty(), "", OptionalLong.empty(), Uuid.ZERO_UUID));
        helper(out, "helper.offset.expiring", offset(42, OptionalInt.of(3), "ä€😀", OptionalLong.of(1700000009999L), TOPIC_ID));
        helper(out, "helper.offset.long", offset(Long.MAX_VALUE, OptionalInt.of(0), "m".repeat(200), OptionalLong.empty(), Uuid.ZERO_UUID));
        helper(out, "helper.offset.gone", GroupCoordinatorRecordHelpers.newOffsetCommitTombstoneRecord("group", "topic", 7));
        helper(out, "helper.group", GroupCoordinatorRecordHelpers.newGroupMetadataRecord(group(), Map.of("m1", bytes(3), "m2", bytes(0))));
        helper(out, "helper.group.empty", GroupCoordinatorRecordHelpers.newGroupMetadataRecord(empty(), Map.of()));
        helper(out, "helper.group.gone", GroupCoordinatorRecordHelpers.newGroupMetadataTombstoneRecord("group"));
    }

    /** Every version that a 4.3.1 coordinator reads. */
    static void byVersion(PrintStream out) {
        for (short version = 0; version <= 4; version++) {
            OffsetCommitValue value = new OffsetCommitValue().setOffset(42).setMetadata("note").setCommitTimestamp(1700000000000L);
            if (version == 1) value.setExpireTimestamp(1700000009999L);
            if (version >= 3) value.setLeaderEpoch(3);
            if (version >= 4) value.setTopicId(TOPIC_ID);
            line(out, "offset.v" + version, key(), MessageUtil.toVersionPrefixedBytes(version, value));
        }
        OffsetCommitValue never = new OffsetCommitValue().setOffset(42).setMetadata("note").setCommitTimestamp(1700000000000L);
        line(out, "offset.v1.never", key(), MessageUtil.toVersionPrefixedBytes((short) 1, never.setExpireTimestamp(-1)));
        line(out, "offset.legacy",
            MessageUtil.toCoordinatorTypePrefixedBytes(new LegacyOffsetCommitKey().setGroup("group").setTopic("topic").setPartition(7)),
            MessageUtil.toVersionPrefixedBytes((short) 0, new LegacyOffsetCommitValue().setOffset(42).setMetadata("note").setCommitTimestamp(1700000000000L)));
        for (short version = 0; version <= 4; version++) {
            GroupMetadataValue.MemberMetadata first = new GroupMetadataValue.MemberMetadata()
                .setMemberId("m1").setClientId("c1").setClientHost("/127.0.0.1").setSessionTimeout(45000)
                .setSubscription(bytes(2)).setAssignment(bytes(3));
            GroupMetadataValue.MemberMetadata second = new GroupMetadataValue.MemberMetadata()
                .setMemberId("m2").setClientId("c2").setClientHost("/::1").setSessionTimeout(6000)
                .setSubscription(bytes(200)).setAssignment(bytes(0));
            if (version >= 1) first.setRebalanceTimeout(300000);
            if (version >= 1) second.setRebalanceTimeout(60000);
            if (version >= 3) second.setGroupInstanceId("i2");
            GroupMetadataValue value = new GroupMetadataValue().setProtocolType("consumer").setGeneration(5)
                .setProtocol("range").setLeader("m1").setMembers(List.of(first, second));
            if (version >= 2) value.setCurrentStateTimestamp(1700000000000L);
            line(out, "group.v" + version, groupKey(), MessageUtil.toVersionPrefixedBytes(version, value));
            GroupMetadataValue nobody = new GroupMetadataValue().setProtocolType("").setGeneration(0)
                .setProtocol(null).setLeader(null).setMembers(List.of());
            line(out, "group.v" + version + ".empty", groupKey(), MessageUtil.toVersionPrefixedBytes(version, nobody));
        }
        line(out, "other.share-group",
            MessageUtil.toCoordinatorTypePrefixedBytes(new ShareGroupMetadataKey().setGroupId("group")),
            MessageUtil.toVersionPrefixedBytes((short) 0, new ShareGroupMetadataValue().setEpoch(9)));
    }

    /** Every part of a consumer group. */
    static void ofConsumers(PrintStream out) {
        consumer(out, "epoch", new ConsumerGroupMetadataKey().setGroupId("group"),
            new ConsumerGroupMetadataValue().setEpoch(9).setMetadataHash(0x0102030405060708L));
        consumer(out, "epoch.plain", new ConsumerGroupMetadataKey().setGroupId("group"), new ConsumerGroupMetadataValue().setEpoch(1));
        consumer(out, "epoch.gone", new ConsumerGroupMetadataKey().setGroupId("group"), null);
        ConsumerGroupMemberMetadataKey member = new ConsumerGroupMemberMetadataKey().setGroupId("group").setMemberId("m1");
        consumer(out, "member", member, new ConsumerGroupMemberMetadataValue().setInstanceId(null).setRackId(null)
            .setClientId("c1").setClientHost("/127.0.0.1").setSubscribedTopicNames(List.of("t", "u"))
            .setSubscribedTopicRegex("").setRebalanceTimeoutMs(300000).setServerAssignor(null));
        consumer(out, "member.classic", member, new ConsumerGroupMemberMetadataValue().setInstanceId("i1").setRackId("r1")
            .setClientId("c1").setClientHost("/::1").setSubscribedTopicNames(List.of())
            .setSubscribedTopicRegex("a.*").setRebalanceTimeoutMs(60000).setServerAssignor("range")
            .setClassicMemberMetadata(new ConsumerGroupMemberMetadataValue.ClassicMemberMetadata().setSessionTimeoutMs(45000)
                .setSupportedProtocols(List.of(
                    new ConsumerGroupMemberMetadataValue.ClassicProtocol().setName("range").setMetadata(bytes(3)),
                    new ConsumerGroupMemberMetadataValue.ClassicProtocol().setName("sticky").setMetadata(bytes(200))))));
        consumer(out, "member.gone", member, null);
        ConsumerGroupTargetAssignmentMetadataKey targets = new ConsumerGroupTargetAssignmentMetadataKey().setGroupId("group");
        consumer(out, "targets", targets,
            new ConsumerGroupTargetAssignmentMetadataValue().setAssignmentEpoch(9).setAssignmentTimestamp(1700000000000L));
        consumer(out, "targets.plain", targets, new ConsumerGroupTargetAssignmentMetadataValue().setAssignmentEpoch(9));
        consumer(out, "targets.gone", targets, null);
        ConsumerGroupTargetAssignmentMemberKey target = new ConsumerGroupTargetAssignmentMemberKey().setGroupId("group").setMemberId("m1");
        consumer(out, "target", target, new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(List.of(
            new ConsumerGroupTargetAssignmentMemberValue.TopicPartition().setTopicId(TOPIC_ID).setPartitions(List.of(0, 7)))));
        consumer(out, "target.empty", target, new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(List.of()));
        consumer(out, "target.gone", target, null);
        ConsumerGroupCurrentMemberAssignmentKey current = new ConsumerGroupCurrentMemberAssignmentKey().setGroupId("group").setMemberId("m1");
        ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions has = new ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions()
            .setTopicId(TOPIC_ID).setPartitions(List.of(0, 7));
        ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions gives = new ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions()
            .setTopicId(TOPIC_ID).setPartitions(List.of(8));
        consumer(out, "current.old", current, new ConsumerGroupCurrentMemberAssignmentValue().setMemberEpoch(9).setPreviousMemberEpoch(8)
            .setState((byte) 1).setAssignedPartitions(List.of(has)).setPartitionsPendingRevocation(List.of(gives)));
        has.setAssignmentEpochs(List.of(3, 9));
        gives.setAssignmentEpochs(List.of(2));
        consumer(out, "current", current, new ConsumerGroupCurrentMemberAssignmentValue().setMemberEpoch(9).setPreviousMemberEpoch(8)
            .setState((byte) 1).setAssignedPartitions(List.of(has)).setPartitionsPendingRevocation(List.of(gives)));
        consumer(out, "current.empty", current, new ConsumerGroupCurrentMemberAssignmentValue().setMemberEpoch(1).setPreviousMemberEpoch(0)
            .setState((byte) 2).setAssignedPartitions(List.of()).setPartitionsPendingRevocation(List.of()));
        consumer(out, "current.gone", current, null);
        ConsumerGroupRegularExpressionKey regex = new ConsumerGroupRegularExpressionKey().setGroupId("group").setRegularExpression("a.*");
        consumer(out, "regex", regex, new ConsumerGroupRegularExpressionValue().setTopics(List.of("a", "ab")).setVersion(7).setTimestamp(1700000000000L));
        consumer(out, "regex.gone", regex, null);
    }

    static void consumer(PrintStream out, String name, ApiMessage key, ApiMessage value) {
        line(out, "consumer." + name, MessageUtil.toCoordinatorTypePrefixedBytes(key),
            value == null ? null : MessageUtil.toVersionPrefixedBytes((short) 0, value));
    }

    /** What the stock formatters of the console consumer make of a file in this format. */
    static void show(Path file, PrintStream out) throws Exception {
        List<MessageFormatter> formatters = List.of(new OffsetsMessageFormatter(), new GroupMetadataMessageFormatter());
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split("\t");
            byte[] value = fields[2].equals("-") ? null : HEX.parseHex(fields[2].equals(".") ? "" : fields[2]);
            out.println(fields[0]);
            for (MessageFormatter formatter : formatters) {
                out.print("  " + formatter.getClass().getSimpleName() + ": ");
                formatter.writeTo(new ConsumerRecord<>("__consumer_offsets", 0, 0, HEX.parseHex(fields[1]), value), out);
                out.println();
            }
        }
    }

    static CoordinatorRecord offset(long offset, OptionalInt epoch, String metadata, OptionalLong expires, Uuid topicId) {
        return GroupCoordinatorRecordHelpers.newOffsetCommitRecord("group", "topic", 7,
            new OffsetAndMetadata(offset, epoch, metadata, 1700000000000L, expires, topicId));
    }

    static ClassicGroup group() {
        ClassicGroup group = new ClassicGroup(new LogContext(), "group", ClassicGroupState.EMPTY, Time.SYSTEM, 5,
            Optional.of("consumer"), Optional.of("range"), Optional.of("m1"), Optional.of(1700000000000L));
        group.add(member("m1", Optional.empty(), "c1", "/127.0.0.1", 300000, 45000, 2));
        group.add(member("m2", Optional.of("i2"), "c2", "/::1", 60000, 6000, 200));
        return group;
    }

    static ClassicGroup empty() {
        return new ClassicGroup(new LogContext(), "group", ClassicGroupState.EMPTY, Time.SYSTEM, 6,
            Optional.of("consumer"), Optional.empty(), Optional.empty(), Optional.of(1700000000000L));
    }

    static ClassicGroupMember member(String id, Optional<String> instance, String client, String host, int rebalance, int session, int metadata) {
        JoinGroupRequestProtocolCollection protocols = new JoinGroupRequestProtocolCollection();
        protocols.add(new JoinGroupRequestProtocol().setName("range").setMetadata(bytes(metadata)));
        return new ClassicGroupMember(id, instance, client, host, rebalance, session, "consumer", protocols);
    }

    static byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) bytes[i] = (byte) (i + 1);
        return bytes;
    }

    static byte[] key() {
        return MessageUtil.toCoordinatorTypePrefixedBytes(new OffsetCommitKey().setGroup("group").setTopic("topic").setPartition(7));
    }

    static byte[] groupKey() {
        return MessageUtil.toCoordinatorTypePrefixedBytes(new GroupMetadataKey().setGroup("group"));
    }

    static void helper(PrintStream out, String name, CoordinatorRecord record) {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        line(out, name, serde.serializeKey(record), serde.serializeValue(record));
    }

    static void line(PrintStream out, String name, byte[] key, byte[] value) {
        out.print(name + "\t" + HEX.formatHex(key) + "\t" + (value == null ? "-" : HEX.formatHex(value)) + "\n");
    }
}
