import java.util.Collections;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The lite pull consumer, which clients have from 4.6.0 on; RocketmqDriver finds it by name. */
final class LitePuller implements Puller {
  private final DefaultLitePullConsumer consumer;
  private final RocketmqDriver.MaxOffset maxOffset;

  LitePuller(String namesrv, RocketmqDriver.MaxOffset maxOffset) throws Exception {
    this.maxOffset = maxOffset;
    consumer = new DefaultLitePullConsumer("lite_reader");
    consumer.setNamesrvAddr(namesrv);
    consumer.setInstanceName("lite");
    consumer.setAutoCommit(false);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.start();
  }

  @Override
  public Iterable<MessageQueue> queues(String topic) throws Exception {
    return RocketmqDriver.patiently(() -> consumer.fetchMessageQueues(topic));
  }

  @Override
  public void read(MessageQueue queue, long deadlineNanos, Sink sink) throws Exception {
    long end = maxOffset.of(queue);
    if (end == 0) {
      return;
    }
    // No seek: the client may deliver what it had pulled before once more.
    consumer.assign(Collections.singletonList(queue));
    for (long next = 0; next < end; ) {
      if (System.nanoTime() > deadlineNanos) {
        throw new IllegalStateException(queue + ": offset " + next + " of " + end + " in time");
      }
      for (MessageExt message : consumer.poll(200)) {
        sink.take(message);
        next = message.getQueueOffset() + 1;
      }
    }
  }
}
