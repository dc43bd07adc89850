import java.net.InetAddress;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.timeline.SnapshotRegistry;

/** The life of a group in Kafka's own coordinator, on a log that takes all and a clock that only steps move. */
abstract class Lives {
    static final String GROUP = "g";

    final Random random;
    final int seed;
    final ManualTime time = new ManualTime();
    final Timer timer = new Timer();
    final GroupCoordinatorShard shard;
    long offset = 0;

    Lives(int seed, Map<String, Object> settings) {
        this.seed = seed;
        this.random = new Random(seed);
        AbstractConfig raw = new AbstractConfig(GroupCoordinatorConfig.CONFIG_DEF, settings, false);
        GroupCoordinatorConfig config = new GroupCoordinatorConfig(raw);
        ConfigDef both = new ConfigDef(GroupCoordinatorConfig.CONFIG_DEF);
        ShareGroupConfig.CONFIG_DEF.configKeys().values().forEach(both::define);
        AbstractConfig share = new AbstractConfig(both, Map.of(), false);
        GroupConfigManager configs = new GroupConfigManager(Map.of(), config, new ShareGroupConfig(share));
        GroupCoordinatorShard.Builder builder = new GroupCoordinatorShard.Builder(config, configs);
        builder.withAuthorizerPlugin(Optional.empty());
        shard = builder.withLogContext(new LogContext()).withTime(time).withTimer(timer).withExecutor(new NoExecutor())
            .withCoordinatorMetrics(new GroupCoordinatorMetrics()).withTopicPartition(new TopicPartition("__consumer_offsets", 0))
            .withSnapshotRegistry(new SnapshotRegistry(new LogContext())).build();
    }

    static AuthorizableRequestContext context(String client, int version) {
        return (AuthorizableRequestContext) java.lang.reflect.Proxy.newProxyInstance(Lives.class.getClassLoader(),
            new Class<?>[] {AuthorizableRequestContext.class}, (proxy, method, arguments) -> switch (method.getName()) {
                case "clientId" -> client;
                case "clientAddress" -> InetAddress.getLoopbackAddress();
                case "requestVersion" -> version;
                default -> null;
            });
    }

    interface Operation {
        CoordinatorResult<?, CoordinatorRecord> run() throws Exception;
    }

    /** As the runtime does. */
    void apply(Operation operation) throws Exception {
        CoordinatorResult<?, CoordinatorRecord> result = operation.run();
        for (CoordinatorRecord record : result.records()) {
            if (result.replayRecords()) shard.replay(offset++, -1, (short) -1, record);
            written(record);
        }
        if (result.appendFuture() != null) result.appendFuture().complete(null);
    }

    /** Sees each record. */
    void written(CoordinatorRecord record) { }

    /** What time brings. */
    void due(Operation operation) throws Exception {
        apply(operation);
    }

    /** Of timers that are due at one moment, the lowest comes first. */
    int rank(String timer) {
        return 0;
    }

    class Timer implements CoordinatorTimer<CoordinatorRecord> {
        record Due(long deadline, TimeoutOperation<CoordinatorRecord> operation) { }

        final Map<String, Due> pending = new HashMap<>();

        public void schedule(String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
            pending.put(key, new Due(time.milliseconds() + unit.toMillis(delay), operation));
        }

        public void schedule(String key, long delay, TimeUnit unit, boolean retry, long backoff, TimeoutOperation<CoordinatorRecord> operation) {
            schedule(key, delay, unit, retry, operation);
        }

        public void scheduleIfAbsent(String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
            if (!pending.containsKey(key)) schedule(key, delay, unit, retry, operation);
        }

        public void cancel(String key) {
            pending.remove(key);
        }

        public boolean isScheduled(String key) {
            return pending.containsKey(key);
        }

        void pass(long ms) throws Exception {
            long end = time.milliseconds() + ms;
            while (true) {
                Optional<Map.Entry<String, Due>> first = pending.entrySet().stream()
                    .filter(entry -> entry.getValue().deadline() <= end)
                    .min(Comparator.comparing((Map.Entry<String, Due> entry) -> entry.getValue().deadline())
                        .thenComparing(entry -> rank(entry.getKey())).thenComparing(entry -> entry.getKey()));
                if (first.isEmpty()) break;
                pending.remove(first.get().getKey());
                time.set(Math.max(time.milliseconds(), first.get().getValue().deadline()));
                TimeoutOperation<CoordinatorRecord> operation = first.get().getValue().operation();
                due(() -> operation.generateRecords());
            }
            time.set(end);
        }
    }

    static class NoExecutor implements CoordinatorExecutor<CoordinatorRecord> {
        public <R> boolean schedule(String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
            throw new UnsupportedOperationException();
        }

        public boolean isScheduled(String key) {
            return false;
        }

        public void cancel(String key) { }
    }

    static class ManualTime implements Time {
        long now = 1_000_000;

        void set(long now) {
            this.now = now;
        }

        public long milliseconds() {
            return now;
        }

        public long hiResClockMs() {
            return now;
        }

        public long nanoseconds() {
            return now * 1_000_000;
        }

        public void sleep(long ms) {
            now += ms;
        }

        public void waitObject(Object object, java.util.function.Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }

        public org.apache.kafka.common.utils.Timer timer(long ms) {
            throw new UnsupportedOperationException();
        }

        public <T> T waitForFuture(CompletableFuture<T> future, long deadline) {
            throw new UnsupportedOperationException();
        }
    }
}
