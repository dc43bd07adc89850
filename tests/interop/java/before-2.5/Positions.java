import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;

/** Positions of a group as clients before 2.5 speak of them: by the group's name alone. */
final class Positions {
  private Positions() {}

  static void send(KafkaProducer<?, ?> producer, KafkaConsumer<?, ?> consumer, String group,
      Map<TopicPartition, OffsetAndMetadata> positions) {
    producer.sendOffsetsToTransaction(positions, group);
  }

  static Map<TopicPartition, OffsetAndMetadata> committed(KafkaConsumer<?, ?> consumer,
      Collection<TopicPartition> partitions) {
    Map<TopicPartition, OffsetAndMetadata> committed = new HashMap<>();
    for (TopicPartition partition : partitions) {
      committed.put(partition, consumer.committed(partition));
    }
    return committed;
  }
}
