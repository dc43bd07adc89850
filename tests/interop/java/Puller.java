import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Reads one queue after another from its first offset: by DefaultMQPullConsumer, or
 * DefaultLitePullConsumer.
 */
interface Puller {
  interface Sink {
    void take(MessageExt message);
  }

  /** Every queue of the topic, in no order. */
  Iterable<MessageQueue> queues(String topic) throws Exception;

  /**
   * Gives every message below the queue's max offset of now to the sink, or throws at the deadline.
   */
  void read(MessageQueue queue, long deadlineNanos, Sink sink) throws Exception;
}
