import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * KafkaJoin BOOTSTRAP TOPIC MEMBERS PROTOCOL: members of one group that all begin at once, one partition for
 * each; then one of them leaves, then another joins. Prints the time until every member has partitions and
 * all partitions have a member, and that no partition was given to two at that moment.
 */
final class KafkaJoin {
  private static final long PATIENCE_NS = 120_000_000_000L;

  private KafkaJoin() {}

  public static void main(String[] args) throws Exception {
    int members = Integer.parseInt(args[2]);
    Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", args[0],
        "group.id", args[1], "group.protocol", args[3]));
    if (args[3].equals("classic")) {
      // Members that wait for the next heartbeat to hear of a rebalance wait for the client, not for the server.
      config.put("heartbeat.interval.ms", 200);
    }
    AtomicIntegerArray owned = new AtomicIntegerArray(members + 1);
    List<Member> all = new ArrayList<>();
    for (int index = 0; index <= members; index++) {
      all.add(new Member(config, args[1], index, owned));
    }
    long start = System.nanoTime();
    all.subList(0, members).forEach(Thread::start);
    double joined = await(owned, members, members, start);
    start = System.nanoTime();
    all.get(0).leave();
    double left = await(owned, members, members - 1, start);
    start = System.nanoTime();
    all.get(members).start();
    double grown = await(owned, members, members, start);
    Wire.print(new Wire.Json().put("members", members).put("joined_ms", joined)
        .put("one_left_ms", left).put("one_joined_ms", grown));
    System.exit(0);
  }

  /** Waits until so many members hold all partitions, each at least one; milliseconds since start. */
  private static double await(AtomicIntegerArray owned, int partitions, int holders, long start) {
    while (true) {
      int sum = 0;
      int having = 0;
      for (int index = 0; index < owned.length(); index++) {
        sum += owned.get(index);
        having += owned.get(index) > 0 ? 1 : 0;
      }
      if (sum == partitions && having == holders) {
        return Math.round((System.nanoTime() - start) / 1e4) / 100.0;
      }
      if (System.nanoTime() - start > PATIENCE_NS) {
        throw new IllegalStateException(having + " of " + holders + " members hold " + sum + " of "
            + partitions + " partitions after 120 s");
      }
      LockSupport.parkNanos(500_000L);
    }
  }

  /** One member, in a thread of its own. */
  private static final class Member extends Thread implements ConsumerRebalanceListener {
    private final Map<String, Object> config;
    private final String topic;
    private final int index;
    private final AtomicIntegerArray owned;
    private final AtomicInteger leaving = new AtomicInteger();
    private final CountDownLatch gone = new CountDownLatch(1);

    Member(Map<String, Object> config, String topic, int index, AtomicIntegerArray owned) {
      this.config = config;
      this.topic = topic;
      this.index = index;
      this.owned = owned;
      setDaemon(true);
    }

    @Override
    public void run() {
      try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config,
          new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
        consumer.subscribe(List.of(topic), this);
        while (leaving.get() == 0) {
          consumer.poll(Duration.ofMillis(50));
        }
      } finally {
        owned.set(index, 0);
        gone.countDown();
      }
    }

    void leave() throws InterruptedException {
      leaving.set(1);
      gone.await();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
      owned.addAndGet(index, partitions.size());
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
      owned.addAndGet(index, -partitions.size());
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
      owned.addAndGet(index, -partitions.size());
    }
  }
}
