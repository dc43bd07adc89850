import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * KafkaFanout BOOTSTRAP TOPIC GROUPS RATE SECONDS BYTES: one paced producer (acks=1) and a consumer in
 * each of some groups; latency of every record in every group from the time it was due, so that a stall
 * counts for all that it held up.
 */
final class KafkaFanout {
  private static final int WARM_UP_S = 3;
  private static final long PATIENCE_NS = 30_000_000_000L;

  private KafkaFanout() {}

  public static void main(String[] args) throws Exception {
    String topic = args[1];
    int groups = Integer.parseInt(args[2]);
    int rate = Integer.parseInt(args[3]);
    int bytes = Integer.parseInt(args[5]);
    int records = rate * (WARM_UP_S + Integer.parseInt(args[4]));
    long[][] latencies = new long[groups][records];
    AtomicLong arrived = new AtomicLong();
    CountDownLatch assigned = new CountDownLatch(groups);
    for (int group = 0; group < groups; group++) {
      long[] own = latencies[group];
      Map<String, Object> config = Map.of("bootstrap.servers", args[0],
          "group.id", topic + "-" + group, "auto.offset.reset", "earliest");
      Thread reader = new Thread(() -> read(config, topic, own, arrived, assigned));
      reader.setDaemon(true);
      reader.start();
    }
    if (!assigned.await(60, TimeUnit.SECONDS)) {
      throw new IllegalStateException("a group has no partitions after 60 s");
    }
    Map<String, Object> config =
        Map.of("bootstrap.servers", args[0], "acks", "1", "enable.idempotence", false, "linger.ms", 0);
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
      int partitions = producer.partitionsFor(topic).size();
      long start = System.nanoTime() + 100_000_000L;
      for (int number = 0; number < records; number++) {
        long due = start + number * (1_000_000_000L / rate);
        for (long wait; (wait = due - System.nanoTime()) > 0; ) {
          LockSupport.parkNanos(wait);
        }
        byte[] body = ByteBuffer.allocate(bytes).putInt(number).putLong(due).array();
        producer.send(new ProducerRecord<>(topic, number % partitions, null, body));
      }
      producer.flush();
    }
    long wanted = (long) records * groups;
    long deadline = System.nanoTime() + PATIENCE_NS;
    while (arrived.get() < wanted && System.nanoTime() < deadline) {
      LockSupport.parkNanos(1_000_000L);
    }
    long[] all = Arrays.stream(latencies)
        .flatMapToLong(own -> Arrays.stream(own, rate * WARM_UP_S, own.length)).sorted().toArray();
    Wire.print(new Wire.Json().put("records", records).put("missing", wanted - arrived.get())
        .put("p50_ms", ms(all, 50)).put("p99_ms", ms(all, 99)));
    System.exit(0);
  }

  private static void read(Map<String, Object> config, String topic, long[] latencies,
      AtomicLong arrived, CountDownLatch assigned) {
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      consumer.subscribe(List.of(topic));
      while (consumer.assignment().isEmpty()) {
        consumer.poll(Duration.ofMillis(50));
      }
      assigned.countDown();
      while (true) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
          ByteBuffer body = ByteBuffer.wrap(record.value());
          int number = body.getInt();
          if (latencies[number] == 0) {
            latencies[number] = System.nanoTime() - body.getLong();
            arrived.incrementAndGet();
          }
        }
      }
    }
  }

  private static double ms(long[] sorted, int percent) {
    return Math.round(sorted[(int) ((sorted.length - 1) * percent / 100.0)] / 1e4) / 100.0;
  }
}
