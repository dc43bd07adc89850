import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;

/**
 * A paced load and its latencies. Each record carries the time at which it was due, so that a stall
 * counts for every record that it held up, sent or not.
 */
final class Pace {
  interface Sender {
    void send(byte[] body, Runnable acknowledged) throws Exception;
  }

  private static final int WARM_UP_S = 3;

  private final int rate;
  private final int seconds;
  private final int bytes;
  private final long[] ends; // end-to-end latency of each record in ns, 0: not yet
  private final long[] acks;
  private long start;
  private long delay;

  Pace(int rate, int seconds, int bytes) {
    this.rate = rate;
    this.seconds = seconds;
    this.bytes = bytes;
    ends = new long[rate * (WARM_UP_S + seconds)];
    acks = new long[ends.length];
  }

  /** The same, of records that shall arrive so much later than they are sent. */
  Pace delayed(long delayMs) {
    delay = delayMs * 1_000_000L;
    return this;
  }

  private long due(int number) {
    return start + number * (1_000_000_000L / rate);
  }

  /** Sends every record when it is due, waits for the last to arrive, prints the figures. */
  void run(Sender sender) throws Exception {
    start = System.nanoTime() + 100_000_000L;
    for (int number = 0; number < ends.length; number++) {
      int own = number;
      for (long wait; (wait = due(number) - System.nanoTime()) > 0; ) {
        LockSupport.parkNanos(wait);
      }
      byte[] body = ByteBuffer.allocate(bytes).putInt(number).array();
      sender.send(body, () -> acks[own] = System.nanoTime() - due(own));
    }
    long deadline = System.nanoTime() + delay + 30_000_000_000L;
    while (missing(ends) + missing(acks) > 0 && System.nanoTime() < deadline) {
      LockSupport.parkNanos(1_000_000L);
    }
    Wire.print(new Wire.Json().put("records", ends.length)
        .put("missing", missing(ends)).put("unacknowledged", missing(acks))
        .put("ack_p50_ms", percentile(acks, 50)).put("ack_p99_ms", percentile(acks, 99))
        .put("p50_ms", percentile(ends, 50)).put("p99_ms", percentile(ends, 99)));
  }

  /** Notes the arrival of a record at its consumer. */
  void arrived(byte[] body) {
    int number = ByteBuffer.wrap(body).getInt();
    if (ends[number] == 0) {
      ends[number] = System.nanoTime() - due(number) - delay;
    }
  }

  private static long missing(long[] latencies) {
    return Arrays.stream(latencies).filter(latency -> latency == 0).count();
  }

  private double percentile(long[] latencies, int percent) {
    long[] sorted = Arrays.copyOfRange(latencies, rate * WARM_UP_S, latencies.length);
    Arrays.sort(sorted);
    return Math.round(sorted[(int) ((sorted.length - 1) * percent / 100.0)] / 1e4) / 100.0;
  }
}
