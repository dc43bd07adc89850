import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** KafkaPace BOOTSTRAP TOPIC RATE SECONDS BYTES: latency of acks=all and end to end. */
final class KafkaPace {
  private KafkaPace() {}

  public static void main(String[] args) throws Exception {
    String topic = args[1];
    Pace pace = new Pace(
        Integer.parseInt(args[2]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
    Map<String, Object> config = Map.of("bootstrap.servers", args[0]);
    KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
        .map(partition -> new TopicPartition(topic, partition.partition()))
        .collect(Collectors.toList());
    consumer.assign(partitions);
    consumer.seekToEnd(partitions);
    partitions.forEach(consumer::position);
    Thread reader = new Thread(() -> {
      while (true) {
        consumer.poll(Duration.ofMillis(100)).forEach(record -> pace.arrived(record.value()));
      }
    });
    reader.setDaemon(true);
    reader.start();
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
      producer.partitionsFor(topic);
      pace.run((body, acknowledged) -> producer.send(new ProducerRecord<>(topic, body),
          (at, failure) -> {
            if (failure == null) {
              acknowledged.run();
            }
          }));
    }
    System.exit(0);
  }
}
