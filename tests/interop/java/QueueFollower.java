import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageQueue;

/** By DefaultMQPullConsumer, whose user keeps the positions and stores them. */
final class QueueFollower extends Follower {
  private final DefaultMQPullConsumer consumer;
  private final Map<MessageQueue, Long> positions = new HashMap<>();

  QueueFollower(String name, String namesrv, String group, String topic) throws Exception {
    super(name);
    consumer = new DefaultMQPullConsumer(group);
    consumer.setNamesrvAddr(namesrv);
    consumer.setInstanceName(name);
    consumer.start();
    for (MessageQueue queue :
        RocketmqDriver.patiently(() -> consumer.fetchSubscribeMessageQueues(topic))) {
      long stored = RocketmqDriver.patiently(() -> consumer.fetchConsumeOffset(queue, true));
      positions.put(queue, Math.max(stored, 0));
    }
  }

  @Override
  void step() throws Exception {
    for (MessageQueue queue : positions.keySet()) {
      long at = positions.get(queue);
      PullResult result = RocketmqDriver.patiently(() -> consumer.pull(queue, "*", at, 2));
      if (result.getPullStatus() == PullStatus.OFFSET_ILLEGAL) {
        throw new IllegalStateException(queue + " at " + at + ": " + result);
      }
      if (result.getPullStatus() == PullStatus.FOUND) {
        result.getMsgFoundList().forEach(this::tell);
      }
      long next = result.getNextBeginOffset();
      if (next != at) {
        consumer.getOffsetStore().updateConsumeOffsetToBroker(queue, next, false);
        positions.put(queue, next);
      }
    }
    Thread.sleep(20);
  }

  @Override
  void close() {
    consumer.shutdown();
  }
}
