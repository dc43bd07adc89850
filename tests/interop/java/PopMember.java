import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A push consumer whose queues the broker assigns, and which pops where the broker says so;
 * RocketmqDriver finds it by name. Messages come as events.
 */
final class PopMember {
  private static final Map<String, CountDownLatch> HOLDING = new ConcurrentHashMap<>();

  /**
   * pop name= group= topic= [invisible=ms] [fail=]: the listener fails with messages that came back
   * less than fail= times, and keeps those with the tag `hold` until their invisible time is over,
   * so that nobody acknowledges them, or until it is released.
   */
  static DefaultMQPushConsumer join(String namesrv, Wire.Args args) throws Exception {
    String name = args.need("name");
    int fail = args.number("fail", 0);
    int invisible = args.number("invisible", 60_000);
    CountDownLatch holding = new CountDownLatch(1);
    HOLDING.put(name, holding);
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args.need("group"));
    consumer.setNamesrvAddr(namesrv);
    consumer.setInstanceName(name);
    consumer.setClientRebalance(false);
    consumer.setPopInvisibleTime(invisible);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setHeartbeatBrokerInterval(1_000);
    consumer.setPollNameServerInterval(1_000);
    consumer.subscribe(args.need("topic"), args.or("tags", "*"));
    consumer.registerMessageListener((MessageListenerConcurrently) (found, context) -> {
      for (MessageExt message : found) {
        Wire.print(RocketmqDriver.json(message).put("event", "record").put("member", name));
      }
      if (found.stream().anyMatch(message -> "hold".equals(message.getTags()))) {
        hold(holding, invisible + 500);
      }
      return found.stream().anyMatch(message -> message.getReconsumeTimes() < fail)
          ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    return consumer;
  }

  /** release name=: what is held is acknowledged. */
  static void release(String name) {
    HOLDING.get(name).countDown();
  }

  private static void hold(CountDownLatch holding, long ms) {
    try {
      holding.await(ms, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
