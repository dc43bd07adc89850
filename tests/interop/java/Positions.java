import java.util.Collection;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;

/** Positions of a group as clients from 2.5 on (KIP-447) speak of them. */
final class Positions {
  private Positions() {}

  /** Makes positions part of the producer's transaction. */
  static void send(KafkaProducer<?, ?> producer, KafkaConsumer<?, ?> consumer, String group,
      Map<TopicPartition, OffsetAndMetadata> positions) {
    producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
  }

  /** What is committed; null, or nothing, for a partition without a position. */
  static Map<TopicPartition, OffsetAndMetadata> committed(KafkaConsumer<?, ?> consumer,
      Collection<TopicPartition> partitions) {
    return consumer.committed(Set.copyOf(partitions));
  }
}
