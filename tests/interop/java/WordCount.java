import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words with Kafka Streams: WordCount BOOTSTRAP STATE_DIR FROM TO. Every change of a word's
 * count becomes a record. Tells its states as JSON lines, and ends with its standard input.
 */
final class WordCount {
  private WordCount() {}

  public static void main(String[] args) throws Exception {
    System.setOut(System.err); // what libraries print
    Properties config = new Properties();
    config.put("bootstrap.servers", args[0]);
    config.put("application.id", "word-count");
    config.put("state.dir", args[1]);
    config.put("processing.guarantee", "exactly_once_v2");
    config.put("num.stream.threads", "2");
    config.put("replication.factor", "1");
    config.put("statestore.cache.max.bytes", "0"); // else several changes become one record
    // An application that was killed is missed after six seconds, and not after 45.
    config.put("session.timeout.ms", "6000");
    config.put("heartbeat.interval.ms", "1000");
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream(args[2], Consumed.with(Serdes.String(), Serdes.String()))
        .flatMapValues(line -> Arrays.asList(line.split(" ")))
        .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
        .count()
        .toStream()
        .mapValues(count -> Long.toString(count))
        .to(args[3], Produced.with(Serdes.String(), Serdes.String()));
    KafkaStreams streams = new KafkaStreams(builder.build(), config);
    streams.setStateListener((to, from) ->
        Wire.print(new Wire.Json().put("event", "state").put("state", to)));
    streams.start();
    while (System.in.read() >= 0) {
      // Only the end counts.
    }
    streams.close(Duration.ofSeconds(120));
    System.exit(0);
  }
}
