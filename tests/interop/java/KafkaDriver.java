import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The stock Java client of Kafka under command: KafkaDriver BOOTSTRAP, commands on standard input
 * (see Wire). `init`, `begin`, `commit`, `abort` with id= are those of a transactional producer;
 * `create`, `describe`, `delete` and `topics` the admin client's (see Topics); `tool` runs a command
 * line tool (see Tools).
 */
final class KafkaDriver {
  private final String bootstrap;
  private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
  private final Map<String, List<Object>> sends = new HashMap<>();
  private final Map<String, Member> members = new HashMap<>();

  private KafkaDriver(String bootstrap) {
    this.bootstrap = bootstrap;
  }

  public static void main(String[] args) throws Exception {
    KafkaDriver driver = new KafkaDriver(args[0]);
    Wire.serve(driver::handle);
    System.exit(0);
  }

  private void handle(String verb, Wire.Args args) throws Exception {
    switch (verb) {
      case "producer": producer(args); break;
      case "send": send(args); break;
      case "flush": flush(args.need("id")); break;
      case "close": producers.remove(args.need("id")).close(); break;
      case "read": read(args); break;
      case "join": join(args); break;
      case "assignment":
        Wire.print(new Wire.Json().put("partitions", members.get(args.need("name")).assigned()));
        break;
      case "leave": members.remove(args.need("name")).leave(); break;
      case "init": producers.get(args.need("id")).initTransactions(); break;
      case "begin": producers.get(args.need("id")).beginTransaction(); break;
      case "commit": producers.get(args.need("id")).commitTransaction(); break;
      case "abort": producers.get(args.need("id")).abortTransaction(); break;
      case "transform": transform(args); break;
      case "create": case "describe": case "delete": case "topics":
        Topics.handle(verb, bootstrap, args);
        break;
      case "tool": Tools.handle(args); break;
      default: throw new IllegalArgumentException("no such command: " + verb);
    }
  }

  private Map<String, Object> config(Wire.Args args) {
    Map<String, Object> config = new HashMap<>(args.under("c."));
    config.put("bootstrap.servers", bootstrap);
    return config;
  }

  /**
   * producer id= [compression=] [c.CONFIG=]: records wait for `flush`, so that they share batches.
   */
  private void producer(Wire.Args args) {
    Map<String, Object> config = config(args);
    config.put("compression.type", args.or("compression", "none"));
    config.putIfAbsent("linger.ms", "60000");
    config.putIfAbsent("batch.size", "1000000");
    config.putIfAbsent("delivery.timeout.ms", "120000");
    String id = args.need("id");
    producers.put(id,
        new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer()));
    sends.put(id, new ArrayList<>());
  }

  /** send id= topic= [partition=] [ts=] [key=hex] [value=hex] [h=hexname:hexvalue|-]... */
  private void send(Wire.Args args) {
    List<Object> results = sends.get(args.need("id"));
    try {
      String partition = args.or("partition", null);
      String timestamp = args.or("ts", null);
      List<Header> headers = new ArrayList<>();
      for (String pair : args.all("h")) {
        String[] parts = pair.split(":", -1);
        byte[] value = parts[1].equals("-") ? null : Wire.bytes(parts[1]);
        headers.add(new RecordHeader(Wire.text(parts[0]), value));
      }
      results.add(producers.get(args.need("id")).send(new ProducerRecord<>(args.need("topic"),
          partition == null ? null : Integer.valueOf(partition),
          timestamp == null ? null : Long.valueOf(timestamp), args.bytes("key"),
          args.bytes("value"), headers)));
    } catch (RuntimeException e) {
      results.add(e);
    }
  }

  /** flush id=: one line for each send since the last flush, in the order of the sends. */
  private void flush(String id) throws InterruptedException {
    producers.get(id).flush();
    for (Object sent : sends.put(id, new ArrayList<>())) {
      Wire.Json line = new Wire.Json();
      try {
        if (sent instanceof RuntimeException) {
          throw new ExecutionException((RuntimeException) sent);
        }
        RecordMetadata at = (RecordMetadata) ((Future<?>) sent).get();
        line.put("partition", at.partition()).put("offset", at.offset())
            .put("timestamp", at.timestamp());
      } catch (ExecutionException e) {
        line.put("failed", e.getCause().toString());
      }
      Wire.print(line);
    }
  }

  /**
   * read topic= [timeout=ms] [c.CONFIG=]: every record below the end of now, by assign() from the
   * beginning.
   */
  private void read(Wire.Args args) {
    String topic = args.need("topic");
    try (KafkaConsumer<byte[], byte[]> consumer = consumer(config(args))) {
      List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
          .map(p -> new TopicPartition(topic, p.partition())).collect(Collectors.toList());
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      long deadline = System.nanoTime() + args.number("timeout", 120_000) * 1_000_000L;
      while (ends.entrySet().stream().anyMatch(e -> consumer.position(e.getKey()) < e.getValue())) {
        if (System.nanoTime() > deadline) {
          throw new IllegalStateException("not everything below " + ends + " came in time");
        }
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
          Wire.print(json(record));
        }
      }
    }
  }

  /**
   * transform id= group= from= to= count= [abort=n]: copies so many records from one topic to the
   * same partition of another, each poll's in one transaction with its positions. Every n-th
   * transaction is aborted and its records come again. Prints how many were committed and aborted.
   */
  private void transform(Wire.Args args) {
    KafkaProducer<byte[], byte[]> producer = producers.get(args.need("id"));
    Map<String, Object> config = config(args);
    config.put("group.id", args.need("group"));
    config.put("auto.offset.reset", "earliest");
    config.put("enable.auto.commit", "false");
    config.put("isolation.level", "read_committed");
    config.putIfAbsent("max.poll.records", "7");
    long count = args.number("count", 0);
    long abort = args.number("abort", 0);
    long copied = 0;
    long aborted = 0;
    long deadline = System.nanoTime() + args.number("timeout", 120_000) * 1_000_000L;
    try (KafkaConsumer<byte[], byte[]> consumer = consumer(config)) {
      consumer.subscribe(Arrays.asList(args.need("from")));
      for (long transactions = 1; copied < count;) {
        if (System.nanoTime() > deadline) {
          throw new IllegalStateException(copied + " of " + count + " records in time");
        }
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
        if (records.isEmpty()) {
          continue;
        }
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> record : records) {
          producer.send(new ProducerRecord<>(args.need("to"), record.partition(), record.key(),
              record.value()));
        }
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (TopicPartition partition : records.partitions()) {
          positions.put(partition, new OffsetAndMetadata(consumer.position(partition)));
        }
        Positions.send(producer, consumer, args.need("group"), positions);
        if (abort > 0 && transactions++ % abort == 0) {
          producer.abortTransaction();
          aborted++;
          rewind(consumer);
        } else {
          producer.commitTransaction();
          copied += records.count();
        }
      }
    }
    Wire.print(new Wire.Json().put("copied", copied).put("aborted", aborted));
  }

  /** Back to what is committed. */
  private static void rewind(KafkaConsumer<byte[], byte[]> consumer) {
    Map<TopicPartition, OffsetAndMetadata> committed =
        Positions.committed(consumer, consumer.assignment());
    for (TopicPartition partition : consumer.assignment()) {
      OffsetAndMetadata at = committed.get(partition);
      consumer.seek(partition, at == null ? 0 : at.offset());
    }
  }

  /**
   * join name= group= topics=a,b|regex= [c.CONFIG=]: a member that polls in its own thread; records
   * come as events. A regex is the server's to resolve (group.protocol=consumer).
   */
  private void join(Wire.Args args) throws ReflectiveOperationException {
    Map<String, Object> config = config(args);
    config.put("group.id", args.need("group"));
    config.putIfAbsent("auto.offset.reset", "earliest");
    config.putIfAbsent("auto.commit.interval.ms", "200");
    KafkaConsumer<byte[], byte[]> consumer = consumer(config);
    Member member = new Member(args.need("name"), consumer);
    if (args.or("regex", "").isEmpty()) {
      consumer.subscribe(Arrays.asList(args.need("topics").split(",")), member);
    } else {
      subscribe(consumer, args.need("regex"), member);
    }
    members.put(args.need("name"), member);
    member.start();
  }

  /** By reflection: clients before 4.0 have no SubscriptionPattern. */
  private static void subscribe(KafkaConsumer<?, ?> consumer, String regex,
      ConsumerRebalanceListener listener) throws ReflectiveOperationException {
    Class<?> pattern = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
    Object of = pattern.getConstructor(String.class).newInstance(regex);
    KafkaConsumer.class.getMethod("subscribe", pattern, ConsumerRebalanceListener.class)
        .invoke(consumer, of, listener);
  }

  private static KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> config) {
    return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  private static Wire.Json json(ConsumerRecord<byte[], byte[]> record) {
    List<Object> headers = new ArrayList<>();
    for (Header header : record.headers()) {
      String name = Wire.hex(header.key().getBytes(StandardCharsets.UTF_8));
      headers.add(Arrays.asList(name, Wire.hex(header.value())));
    }
    return new Wire.Json().put("topic", record.topic()).put("partition", record.partition())
        .put("offset", record.offset()).put("timestamp", record.timestamp())
        .put("timestampType", record.timestampType()).put("key", Wire.hex(record.key()))
        .put("value", Wire.hex(record.value())).put("headers", headers);
  }

  /** One consumer of a group and the thread that alone touches it. */
  private static final class Member extends Thread implements ConsumerRebalanceListener {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private volatile List<String> assigned = List.of();
    private volatile boolean leaving;
    private volatile Exception failure;

    Member(String name, KafkaConsumer<byte[], byte[]> consumer) {
      super(name);
      this.consumer = consumer;
    }

    @Override
    public void run() {
      try {
        while (!leaving) {
          for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
            Wire.print(json(record).put("event", "record").put("member", getName()));
          }
        }
      } catch (Exception e) {
        failure = e;
      } finally {
        consumer.close();
      }
    }

    List<String> assigned() throws Exception {
      if (failure != null) {
        throw failure;
      }
      return assigned;
    }

    /** Commits and leaves the group. */
    void leave() throws Exception {
      leaving = true;
      join();
      if (failure != null) {
        throw failure;
      }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> added) {
      assigned = consumer.assignment().stream().map(TopicPartition::toString)
          .sorted().collect(Collectors.toList());
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> removed) {
      assigned = consumer.assignment().stream().filter(p -> !removed.contains(p))
          .map(TopicPartition::toString).sorted().collect(Collectors.toList());
    }
  }
}
