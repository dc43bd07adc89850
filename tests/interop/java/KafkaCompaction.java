import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * KafkaCompaction BOOTSTRAP TOPIC RECORDS KEYS BYTES: fills one compacted partition whose records are all too
 * young to be compacted, prints a line, waits for one on its input, then lifts that rule and prints
 * how long the log took to become small and stay so.
 */
final class KafkaCompaction {
  private static final long SETTLED_NS = 5_000_000_000L;
  private static final long PATIENCE_NS = 240_000_000_000L;

  private KafkaCompaction() {}

  public static void main(String[] args) throws Exception {
    String topic = args[1];
    int records = Integer.parseInt(args[2]);
    int keys = Integer.parseInt(args[3]);
    byte[] value = new byte[Integer.parseInt(args[4])];
    Random random = new Random(1);
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
      admin.createTopics(List.of(new NewTopic(topic, 1, (short) -1).configs(Map.of(
          "cleanup.policy", "compact", "segment.bytes", "16777216",
          "min.cleanable.dirty.ratio", "0.01", "min.compaction.lag.ms", "86400000")))).all().get();
      try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
          Map.of("bootstrap.servers", args[0], "linger.ms", 20, "batch.size", 65536),
          new ByteArraySerializer(), new ByteArraySerializer())) {
        for (int number = 0; number < records; number++) {
          random.nextBytes(value);
          byte[] key = ByteBuffer.allocate(8).putLong(random.nextInt(keys)).array();
          producer.send(new ProducerRecord<>(topic, key, value.clone()));
        }
        producer.flush();
      }
      long before = size(admin, topic);
      Wire.print(new Wire.Json().put("filled_bytes", before));
      System.in.read();
      long start = System.nanoTime();
      admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic),
          List.of(new AlterConfigOp(new ConfigEntry("min.compaction.lag.ms", "0"),
              AlterConfigOp.OpType.SET)))).all().get();
      long last = before;
      long changed = 0;
      while (changed == 0 || System.nanoTime() - changed < SETTLED_NS) {
        if (System.nanoTime() - start > PATIENCE_NS) {
          throw new IllegalStateException("the log did not settle within 240 s");
        }
        LockSupport.parkNanos(20_000_000L);
        long now = size(admin, topic);
        if (now != last) {
          last = now;
          changed = System.nanoTime();
        }
      }
      Wire.print(new Wire.Json().put("records", records).put("before_bytes", before)
          .put("after_bytes", last).put("seconds", Math.round((changed - start) / 1e7) / 100.0));
    }
    System.exit(0);
  }

  private static long size(Admin admin, String topic) throws Exception {
    Collection<Integer> nodes =
        admin.describeCluster().nodes().get().stream().map(node -> node.id()).toList();
    long size = 0;
    for (Map<String, LogDirDescription> folders :
        admin.describeLogDirs(nodes).allDescriptions().get().values()) {
      for (LogDirDescription folder : folders.values()) {
        size += folder.replicaInfos().entrySet().stream()
            .filter(replica -> replica.getKey().topic().equals(topic))
            .mapToLong(replica -> replica.getValue().size()).sum();
      }
    }
    return size;
  }
}
