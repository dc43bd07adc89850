import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData.Assignment;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData.DescribedGroup;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData.TopicPartitions;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataValue;

/** Random lives of a consumer group in Kafka's own coordinator, step by step. See README.md. */
public class ConsumerScripts extends Lives {
    static final String[] NAMES = {"A", "B", "C", "D"};

    public static void main(String[] args) throws Exception {
        int count = args.length > 1 ? Integer.parseInt(args[1]) : 100;
        try (PrintStream out = new PrintStream(args[0], StandardCharsets.UTF_8)) {
            for (int seed = 0; seed < count; seed++) new ConsumerScripts(seed).play(out);
        }
        System.exit(0);
    }

    final Map<String, Client> clients = new TreeMap<>();
    Image image = new Image(1, new TreeMap<>(Map.of("t", 3)));
    long hash = 0;
    String answer;

    ConsumerScripts(int seed) throws Exception {
        super(seed, Map.of(GroupCoordinatorConfig.CONSUMER_GROUP_ASSIGNORS_CONFIG, "range"));
        shard.onLoaded(image);
        for (String name : NAMES) clients.put(name, new Client(name));
    }

    /** A and B are dynamic members, C and D static ones; D takes C's instance id. */
    static class Client {
        final String name;
        int number = 1;
        int epoch = 0;
        String topics;
        Map<String, Set<Integer>> owned = new TreeMap<>();

        Client(String name) {
            this.name = name;
        }

        String member() {
            return name + number;
        }

        String instance() {
            return name.compareTo("C") >= 0 ? "iC" : null;
        }
    }

    void play(PrintStream out) throws Exception {
        out.println("script " + seed);
        int steps = 20 + random.nextInt(30);
        for (int step = 0; step < steps; step++) {
            // D comes seldom.
            Client client = clients.get(NAMES[random.nextInt(4 * NAMES.length - 3) / 4]);
            answer = null;
            String action = act(client);
            if (action == null) continue;
            out.println("> " + action);
            if (answer != null) out.println("< " + answer);
            out.println("= " + describe());
        }
    }

    String act(Client client) throws Exception {
        switch (random.nextInt(16)) {
            case 0: case 1: case 2: case 3: case 4: case 5: case 6:
                return beat(client, client.epoch, client.epoch == 0, random.nextInt(3) > 0);
            case 7:
                return beat(client, client.epoch, true, true);
            case 8:
                if (client.epoch == 0) return null;
                return beat(client, client.epoch + (random.nextBoolean() ? 1 : -1), false, random.nextBoolean());
            case 9:
                if (random.nextInt(2) == 0) return null;
                return leave(client, client.instance() != null && random.nextInt(3) > 0 ? -2 : -1);
            case 10: case 11:
                return commit(client);
            case 12:
                return topics();
            case 13:
                // It forgets all that it was.
                if (random.nextInt(3) > 0) return null;
                client.epoch = 0;
                if (client.instance() != null) client.number++;
                return beat(client, 0, true, true);
            default:
                int[] times = {10, 500, 999, 1000, 1000, 3000, 5000, 29999, 30001, 45000};
                int ms = times[random.nextInt(times.length)];
                timer.pass(ms);
                return "pass " + ms;
        }
    }

    String beat(Client client, int epoch, boolean wishes, boolean tells) throws Exception {
        boolean joins = epoch == 0;
        ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData().setGroupId(GROUP)
            .setMemberId(client.member()).setMemberEpoch(epoch).setInstanceId(client.instance());
        if (joins) {
            request.setRebalanceTimeoutMs(30000);
            client.owned = new TreeMap<>();
        }
        if (wishes || joins) {
            String[] wanted = {"t", "t", "t,u", "t,u", "u"};
            client.topics = wanted[random.nextInt(wanted.length)];
            request.setSubscribedTopicNames(client.topics.isEmpty() ? List.of() : List.of(client.topics.split(",")));
        }
        if (tells || joins) request.setTopicPartitions(client.owned.entrySet().stream().map(entry -> new TopicPartitions()
            .setTopicId(id(entry.getKey())).setPartitions(List.copyOf(entry.getValue()))).toList());
        String wish = wishes || joins ? (client.topics.isEmpty() ? "none" : client.topics) : "-";
        String action = "beat " + client.member() + " " + epoch + " " + (client.instance() == null ? "-" : client.instance()) + " "
            + wish + " " + (tells || joins ? show(client.owned) : "-");
        call(client, request);
        return action;
    }

    String leave(Client client, int epoch) throws Exception {
        ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData().setGroupId(GROUP)
            .setMemberId(client.member()).setMemberEpoch(epoch).setInstanceId(client.instance());
        String action = "beat " + client.member() + " " + epoch + " " + (client.instance() == null ? "-" : client.instance()) + " - -";
        call(client, request);
        client.epoch = 0;
        if (client.instance() != null) client.number++;
        return action;
    }

    void call(Client client, ConsumerGroupHeartbeatRequestData request) throws Exception {
        try {
            CoordinatorResult<ConsumerGroupHeartbeatResponseData, CoordinatorRecord> result =
                shard.consumerGroupHeartbeat(context(client.name, 1), request);
            apply(() -> result);
            ConsumerGroupHeartbeatResponseData told = result.response();
            client.epoch = Math.max(told.memberEpoch(), 0);
            answer = "NONE " + told.memberEpoch();
            if (told.assignment() == null) {
                answer += " -";
            } else {
                client.owned = new TreeMap<>();
                told.assignment().topicPartitions().forEach(topic -> client.owned.put(name(topic.topicId()), new TreeSet<>(topic.partitions())));
                answer += " " + show(client.owned);
            }
        } catch (ApiException e) {
            answer = Errors.forException(e).name();
            if (request.memberEpoch() == client.epoch) client.epoch = 0;
        }
    }

    String commit(Client client) throws Exception {
        int epoch = client.epoch - (random.nextInt(3) == 0 ? 1 : 0);
        int partition = random.nextInt(3);
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(GROUP).setMemberId(client.member())
            .setGroupInstanceId(client.instance()).setGenerationIdOrMemberEpoch(epoch)
            .setTopics(List.of(new OffsetCommitRequestData.OffsetCommitRequestTopic().setName("t").setTopicId(id("t")).setPartitions(List.of(
                new OffsetCommitRequestData.OffsetCommitRequestPartition().setPartitionIndex(partition).setCommittedOffset(1)))));
        try {
            CoordinatorResult<OffsetCommitResponseData, CoordinatorRecord> result = shard.commitOffset(context(client.name, 10), request);
            apply(() -> result);
            answer = Errors.forCode(result.response().topics().get(0).partitions().get(0).errorCode()).name();
        } catch (ApiException e) {
            answer = Errors.forException(e).name();
        }
        return "commit " + client.member() + " " + epoch + " " + partition;
    }

    /** Topics grow, u comes and goes. */
    String topics() {
        TreeMap<String, Integer> next = new TreeMap<>(image.topics);
        if (random.nextBoolean()) next.merge("t", 1, Integer::sum);
        else if (next.containsKey("u")) next.remove("u");
        else next.put("u", 1 + random.nextInt(3));
        Image before = image;
        image = new Image(before.version + 1, next);
        shard.onMetadataUpdate(new Delta(before, image), image);
        return "topics " + next.entrySet().stream().map(entry -> entry.getKey() + ":" + entry.getValue()).collect(Collectors.joining(";"));
    }

    String describe() {
        DescribedGroup group = shard.consumerGroupDescribe(List.of(GROUP), Long.MAX_VALUE).get(0);
        if (group.errorCode() != 0) return "nothing";
        String members = group.members().stream().sorted(Comparator.comparing(member -> member.memberId()))
            .map(member -> member.memberId() + ":" + member.memberEpoch() + ":" + show(member.assignment()) + ":" + show(member.targetAssignment()))
            .collect(Collectors.joining(" "));
        return group.groupState() + " " + group.groupEpoch() + " " + group.assignmentEpoch() + " " + Long.toHexString(hash) + " [" + members + "]";
    }

    String show(Assignment assignment) {
        Map<String, Set<Integer>> topics = new TreeMap<>();
        assignment.topicPartitions().forEach(topic -> topics.put(name(topic.topicId()), new TreeSet<>(topic.partitions())));
        return show(topics);
    }

    static String show(Map<String, Set<Integer>> topics) {
        String text = topics.entrySet().stream().filter(entry -> !entry.getValue().isEmpty()).map(entry -> entry.getKey() + ":"
            + entry.getValue().stream().map(String::valueOf).collect(Collectors.joining(","))).collect(Collectors.joining(";"));
        return text.isEmpty() ? "none" : text;
    }

    static Uuid id(String name) {
        return new Uuid((long) name.charAt(0) << 56, 0);
    }

    static String name(Uuid id) {
        return String.valueOf((char) (id.getMostSignificantBits() >>> 56));
    }

    @Override
    void written(CoordinatorRecord record) {
        if (record.key() instanceof ConsumerGroupMetadataKey)
            hash = record.value() == null ? 0 : ((ConsumerGroupMetadataValue) record.value().message()).metadataHash();
    }

    record Topic(String name, int partitionCount) implements CoordinatorMetadataImage.TopicMetadata {
        public Uuid id() {
            return ConsumerScripts.id(name);
        }

        public List<String> partitionRacks(int partition) {
            return new ArrayList<>();
        }
    }

    record Image(long version, TreeMap<String, Integer> topics) implements CoordinatorMetadataImage {
        public Set<Uuid> topicIds() {
            return topics.keySet().stream().map(ConsumerScripts::id).collect(Collectors.toSet());
        }

        public Set<String> topicNames() {
            return topics.keySet();
        }

        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(topics.get(name)).map(count -> new Topic(name, count));
        }

        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return topicMetadata(name(id));
        }

        public CoordinatorMetadataDelta emptyDelta() {
            return new Delta(this, this);
        }

        public boolean isEmpty() {
            return topics.isEmpty();
        }
    }

    record Delta(Image image, Image next) implements CoordinatorMetadataDelta {
        public Collection<Uuid> createdTopicIds() {
            return next.topicIds().stream().filter(id -> !image.topicIds().contains(id)).toList();
        }

        public Collection<Uuid> changedTopicIds() {
            return next.topicIds().stream().filter(id -> !next.topics.get(name(id)).equals(image.topics.get(name(id)))).toList();
        }

        public Set<Uuid> deletedTopicIds() {
            return image.topicIds().stream().filter(id -> !next.topicIds().contains(id)).collect(Collectors.toSet());
        }
    }
}
