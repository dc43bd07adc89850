import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;

import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.DescribeGroupsResponseData.DescribedGroup;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocolCollection;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData.MemberIdentity;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData.SyncGroupRequestAssignment;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.GroupMetadataManager;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupState;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/** Random lives of a classic group in Kafka's own coordinator, step by step. See README.md. */
public class Scripts extends Lives {
    /** Lives that, of the first 6,000, have steps that are in none of the first 150. */
    static final int[] RARE = {
        190, 285, 351, 472, 488, 672, 792, 870, 959, 985, 1076, 1085, 1183, 1200, 1245, 1515, 1573, 1658,
        1698, 1906, 2170, 2221, 2247, 2295, 2440, 2522, 2524, 2602, 2617, 2728, 2782, 2787, 2942, 3160, 3169,
        3178, 3182, 3216, 3454, 3492, 3519, 3574, 3860, 4026, 4146, 4174, 4175, 4217, 4332, 4346, 4445, 4637,
        4975, 5264, 5481, 5587, 5654, 5673, 5699, 5778, 5876, 5985
    };
    static final String[] NAMES = {"A", "B", "C", "D", "E"};

    public static void main(String[] args) throws Exception {
        int count = args.length > 1 ? Integer.parseInt(args[1]) : 150;
        try (PrintStream out = new PrintStream(args[0], StandardCharsets.UTF_8)) {
            for (int seed = 0; seed < count; seed++) new Scripts(seed).play(out);
            if (args.length == 1) for (int seed : RARE) new Scripts(seed).play(out);
        }
        System.exit(0);
    }

    final GroupMetadataManager groups;
    final Map<String, Client> clients = new TreeMap<>();
    /** Short names of member ids, in the order in which a client sees them. */
    final Map<String, String> tokens = new HashMap<>();
    final Map<String, Integer> seen = new HashMap<>();
    final List<String> answers = new ArrayList<>();
    boolean lost = false;

    Scripts(int seed) throws Exception {
        super(seed, Map.of());
        Field field = GroupCoordinatorShard.class.getDeclaredField("groupMetadataManager");
        field.setAccessible(true);
        groups = (GroupMetadataManager) field.get(shard);
        Method expiry = GroupCoordinatorShard.class.getDeclaredMethod("scheduleGroupMetadataExpiration");
        expiry.setAccessible(true);
        expiry.invoke(shard);
        for (String name : NAMES) clients.put(name, new Client(name));
    }

    static class Client {
        final String name;
        String member = "";
        int generation = -1;
        List<String> leads = List.of();
        boolean joining;
        boolean syncing;

        Client(String name) {
            this.name = name;
        }

        /** C and D are static members; E is another process with C's instance id. */
        String instance() {
            return name.equals("E") ? "iC" : name.compareTo("C") >= 0 ? "i" + name : null;
        }

        /** A joins by the id that it is given first; C knows how to skip an assignment. */
        short version() {
            return (short) (name.equals("A") || name.equals("C") ? 9 : 3);
        }
    }

    void play(PrintStream out) throws Exception {
        out.println("script " + seed);
        int steps = 20 + random.nextInt(25);
        for (int step = 0; step < steps; step++) {
            // E comes seldom.
            Client client = clients.get(NAMES[random.nextInt(4 * NAMES.length - 3) / 4]);
            String leader = leader();
            answers.clear();
            String action = act(client);
            if (action == null) continue;
            settle();
            if (lost || ambiguous(leader)) break;
            out.println("> " + action);
            answers.stream().sorted().forEach(answer -> out.println("< " + answer));
            out.println("= " + describe());
        }
    }

    String act(Client client) throws Exception {
        if (client.leads.size() > 0 && !client.syncing && random.nextInt(3) == 0) return sync(client);
        switch (random.nextInt(12)) {
            case 0: case 1: case 2: case 3:
                return join(client);
            case 4: case 5: case 6:
                return sync(client);
            case 7:
                return heartbeat(client);
            case 8:
                return random.nextInt(3) == 0 ? leave(client) : heartbeat(client);
            case 9:
                return commit(client);
            case 10:
                if (random.nextInt(4) != 0 || client.joining || client.syncing) return null;
                client.member = "";
                client.generation = -1;
                client.leads = List.of();
                return "forget " + client.name;
            default:
                int[] times = {500, 500, 3000, 3000, 3000, 3000, 5000, 9999, 10000, 61000};
                int ms = times[random.nextInt(times.length)];
                timer.pass(ms);
                return "pass " + ms;
        }
    }

    String join(Client client) throws Exception {
        if (client.joining) return null;
        String[] offers = {"a", "a", "a,b", "a,b", "a,b", "b,a", "b,a", "b", "c"};
        String offer = offers[random.nextInt(offers.length)];
        JoinGroupRequestProtocolCollection protocols = new JoinGroupRequestProtocolCollection();
        for (String name : offer.split(","))
            protocols.add(new JoinGroupRequestProtocol().setName(name).setMetadata((client.name + name).getBytes(StandardCharsets.UTF_8)));
        JoinGroupRequestData request = new JoinGroupRequestData().setGroupId(GROUP).setMemberId(client.member)
            .setGroupInstanceId(client.instance()).setProtocolType("test").setProtocols(protocols)
            .setSessionTimeoutMs(10000).setRebalanceTimeoutMs(client.name.equals("D") ? 30000 : 60000);
        CompletableFuture<JoinGroupResponseData> future = new CompletableFuture<>();
        client.joining = true;
        future.thenAccept(answer -> joined(client, answer));
        String action = "join " + client.name + " " + offer;
        apply(() -> shard.classicGroupJoin(context(client), request, future));
        return action;
    }

    void joined(Client client, JoinGroupResponseData answer) {
        client.joining = false;
        Errors error = Errors.forCode(answer.errorCode());
        client.member = answer.memberId();
        client.generation = answer.generationId();
        client.leads = answer.members().stream().map(member -> member.memberId()).toList();
        if (error == Errors.UNKNOWN_MEMBER_ID || error == Errors.FENCED_INSTANCE_ID) client.member = "";
        String members = answer.members().stream().map(member -> token(member.memberId()) + ":"
            + new String(member.metadata(), StandardCharsets.UTF_8)).sorted().collect(Collectors.joining(","));
        answers.add(client.name + " join " + error + " " + answer.generationId() + " " + answer.protocolType() + " "
            + (answer.protocolName() == null ? "null" : answer.protocolName()) + " " + token(answer.leader()) + " "
            + token(answer.memberId()) + " " + answer.skipAssignment() + " [" + members + "]");
    }

    String sync(Client client) throws Exception {
        if (client.member.isEmpty() || client.syncing || client.joining) return null;
        SyncGroupRequestData request = new SyncGroupRequestData().setGroupId(GROUP).setMemberId(client.member)
            .setGroupInstanceId(client.instance()).setGenerationId(client.generation)
            .setAssignments(client.leads.stream().map(id -> new SyncGroupRequestAssignment().setMemberId(id)
                .setAssignment((token(id) + "@" + client.generation).getBytes(StandardCharsets.UTF_8))).toList());
        CompletableFuture<SyncGroupResponseData> future = new CompletableFuture<>();
        client.syncing = true;
        future.thenAccept(answer -> {
            client.syncing = false;
            Errors error = Errors.forCode(answer.errorCode());
            if (error == Errors.UNKNOWN_MEMBER_ID || error == Errors.FENCED_INSTANCE_ID) client.member = "";
            answers.add(client.name + " sync " + error + " " + answer.protocolType() + " " + answer.protocolName() + " ["
                + (error == Errors.NONE ? new String(answer.assignment(), StandardCharsets.UTF_8) : "") + "]");
        });
        apply(() -> shard.classicGroupSync(context(client), request, future));
        return "sync " + client.name;
    }

    String heartbeat(Client client) throws Exception {
        if (client.member.isEmpty()) return null;
        HeartbeatRequestData request = new HeartbeatRequestData().setGroupId(GROUP).setMemberId(client.member)
            .setGroupInstanceId(client.instance()).setGenerationId(client.generation);
        Errors error;
        try {
            CoordinatorResult<HeartbeatResponseData, CoordinatorRecord> result = shard.classicGroupHeartbeat(context(client), request);
            apply(() -> result);
            error = Errors.forCode(result.response().errorCode());
        } catch (ApiException e) {
            error = Errors.forException(e);
        }
        answers.add(client.name + " heartbeat " + error);
        return "heartbeat " + client.name;
    }

    String leave(Client client) throws Exception {
        if (client.member.isEmpty()) return null;
        LeaveGroupRequestData request = new LeaveGroupRequestData().setGroupId(GROUP)
            .setMembers(List.of(new MemberIdentity().setMemberId(client.member).setGroupInstanceId(client.instance())));
        Errors error;
        try {
            CoordinatorResult<LeaveGroupResponseData, CoordinatorRecord> result = shard.classicGroupLeave(context(client), request);
            apply(() -> result);
            error = Errors.forCode(result.response().members().get(0).errorCode());
        } catch (ApiException e) {
            error = Errors.forException(e);
        }
        // Kafka leaves the sync of a member that leaves without an answer.
        if (error == Errors.NONE && client.syncing) {
            client.syncing = false;
            client.member = "";
            answers.add(client.name + " sync UNKNOWN_MEMBER_ID null null []");
        }
        answers.add(client.name + " leave " + error);
        return "leave " + client.name;
    }

    String commit(Client client) throws Exception {
        if (client.member.isEmpty()) return null;
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(GROUP).setMemberId(client.member)
            .setGroupInstanceId(client.instance()).setGenerationIdOrMemberEpoch(client.generation)
            .setTopics(List.of(new OffsetCommitRequestData.OffsetCommitRequestTopic().setName("t").setPartitions(List.of(
                new OffsetCommitRequestData.OffsetCommitRequestPartition().setPartitionIndex(0).setCommittedOffset(1)))));
        Errors error;
        try {
            CoordinatorResult<OffsetCommitResponseData, CoordinatorRecord> result = shard.commitOffset(context(client), request);
            apply(() -> result);
            error = Errors.forCode(result.response().topics().get(0).partitions().get(0).errorCode());
        } catch (ApiException e) {
            error = Errors.forException(e);
        }
        // A group that has but a given id is no group here.
        if (error == Errors.GROUP_ID_NOT_FOUND) error = Errors.UNKNOWN_MEMBER_ID;
        answers.add(client.name + " commit " + error);
        return "commit " + client.name;
    }

    String describe() {
        DescribedGroup group = shard.describeGroups(context(clients.get("A")), List.of(GROUP), Long.MAX_VALUE).get(0);
        String type = group.protocolType() == null ? "" : group.protocolType();
        // A group that has but a given id, or had one, is no group here.
        if (type.isEmpty()) return "nothing";
        String members = group.members().stream().map(member -> member.groupInstanceId() + "/" + member.clientId() + ":"
            + new String(member.memberMetadata(), StandardCharsets.UTF_8) + ":"
            + new String(member.memberAssignment(), StandardCharsets.UTF_8)).sorted().collect(Collectors.joining(","));
        return group.groupState() + " " + type + " " + (group.protocolData() == null ? "" : group.protocolData()) + " [" + members + "]";
    }

    String leader() {
        try {
            return ((ClassicGroup) groups.group(GROUP)).leaderOrNull();
        } catch (ApiException | ClassCastException e) {
            return null;
        }
    }

    /** Kafka takes a new leader in the order of a hash map; such a step is not told. */
    boolean ambiguous(String before) {
        String after = leader();
        if (before == null || after == null || before.equals(after)) return false;
        // A static member that comes back leads on.
        if (before.startsWith("i") && prefix(before).equals(prefix(after))) return false;
        return ((ClassicGroup) groups.group(GROUP)).numMembers() > 1;
    }

    /** Kafka's mark of a member that came during the initial delay outlives it, and lengthens a later one. */
    void forgetNewMember() {
        try {
            ClassicGroup group = (ClassicGroup) groups.group(GROUP);
            if (!group.isInState(ClassicGroupState.PREPARING_REBALANCE)) group.setNewMemberAdded(false);
        } catch (ApiException e) {
            // No group, no mark.
        }
    }

    String prefix(String member) {
        return member.length() < 37 ? member : member.substring(0, member.length() - 37);
    }

    String token(String member) {
        if (member == null || member.isEmpty()) return "-";
        return tokens.computeIfAbsent(member, id -> prefix(id) + seen.merge(prefix(id), 1, Integer::sum));
    }

    AuthorizableRequestContext context(Client client) {
        return context(client.name, client.version());
    }

    void settle() throws Exception {
        timer.pass(0);
    }

    @Override
    void apply(Operation operation) throws Exception {
        super.apply(operation);
        forgetNewMember();
    }

    @Override
    void due(Operation operation) throws Exception {
        String leader = leader();
        apply(operation);
        lost |= ambiguous(leader);
    }

    @Override
    int rank(String timer) {
        return timer.startsWith("heartbeat-") ? 0 : timer.startsWith("join-") ? 1 : timer.startsWith("sync-") ? 2 : 3;
    }
}
