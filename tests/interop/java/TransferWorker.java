import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Makes transfers between accounts: TransferWorker BOOTSTRAP NAME TRANSACTIONAL_ID FROM DEBITS
 * CREDITS ABORT. A record of FROM is "transfer payer payee amount"; it becomes "transfer attempt
 * amount" under the payer's name in DEBITS and under the payee's in CREDITS. What one poll brings is
 * one transaction, or attempt, with the positions; every ABORT-th is aborted and its records come
 * again. When a call fails, client and transaction are given up and made anew, as an application
 * does. Tells as JSON lines what it commits and aborts, and ends with its standard input.
 */
final class TransferWorker {
  private static final String GROUP = "transfer-workers";

  private final String[] args;
  private final long abort;
  private volatile boolean stopped;
  private long attempts;

  private TransferWorker(String[] args) {
    this.args = args;
    this.abort = Long.parseLong(args[6]);
  }

  public static void main(String[] args) throws Exception {
    System.setOut(System.err); // what libraries print
    TransferWorker worker = new TransferWorker(args);
    Thread thread = new Thread(worker::run, "worker");
    thread.start();
    while (System.in.read() >= 0) {
      // Only the end counts.
    }
    worker.stopped = true;
    thread.join();
    System.exit(0);
  }

  private void run() {
    while (!stopped) {
      try (KafkaConsumer<String, String> consumer = consumer()) {
        // Not closed by `try`: a producer that failed would wait for what it cannot send.
        KafkaProducer<String, String> producer = producer();
        try {
          producer.initTransactions();
          consumer.subscribe(Arrays.asList(args[3]));
          work(consumer, producer);
        } finally {
          producer.close(Duration.ZERO);
        }
      } catch (KafkaException e) {
        tell("failed", e.toString());
      }
    }
  }

  private KafkaConsumer<String, String> consumer() {
    Map<String, Object> config = new HashMap<>();
    config.put("bootstrap.servers", args[0]);
    config.put("group.id", GROUP);
    config.put("auto.offset.reset", "earliest");
    config.put("enable.auto.commit", "false");
    config.put("isolation.level", "read_committed");
    config.put("max.poll.records", "5");
    // The next worker is the same member: nobody waits for the end of the last one's session.
    config.put("group.instance.id", args[2]);
    return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
  }

  private KafkaProducer<String, String> producer() {
    Map<String, Object> config = new HashMap<>();
    config.put("bootstrap.servers", args[0]);
    config.put("transactional.id", args[2]);
    return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
  }

  private void work(KafkaConsumer<String, String> consumer,
      KafkaProducer<String, String> producer) {
    while (!stopped) {
      ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
      if (records.isEmpty()) {
        continue;
      }
      String attempt = args[1] + "." + attempts++;
      producer.beginTransaction();
      for (ConsumerRecord<String, String> record : records) {
        String[] words = record.value().split(" ");
        String entry = words[0] + " " + attempt + " " + words[3];
        producer.send(new ProducerRecord<>(args[4], words[1], entry));
        producer.send(new ProducerRecord<>(args[5], words[2], entry));
      }
      Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
      for (TopicPartition partition : records.partitions()) {
        positions.put(partition, new OffsetAndMetadata(consumer.position(partition)));
      }
      producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
      if (abort > 0 && attempts % abort == 0) {
        producer.flush(); // so that there is something to abort
        tell("aborting", attempt);
        producer.abortTransaction();
        rewind(consumer);
      } else {
        producer.commitTransaction();
        tell("committed", attempt);
      }
    }
  }

  /** Back to what is committed. */
  private static void rewind(KafkaConsumer<String, String> consumer) {
    Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
    for (TopicPartition partition : consumer.assignment()) {
      OffsetAndMetadata at = committed.get(partition);
      consumer.seek(partition, at == null ? 0 : at.offset());
    }
  }

  private static void tell(String event, String what) {
    Wire.print(new Wire.Json().put("event", event).put("what", what));
  }
}
