import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/** RocketmqPace NAMESRV TOPIC RATE SECONDS BYTES DELAY_MS: latency of sends and end to end. */
final class RocketmqPace {
  private RocketmqPace() {}

  public static void main(String[] args) throws Exception {
    String topic = args[1];
    Pace pace = new Pace(
        Integer.parseInt(args[2]), Integer.parseInt(args[3]), Integer.parseInt(args[4]));
    long delay = Long.parseLong(args[5]);
    pace.delayed(delay);
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("pace_" + topic);
    consumer.setNamesrvAddr(args[0]);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerConcurrently) (found, context) -> {
      found.forEach(message -> pace.arrived(message.getBody()));
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    DefaultMQProducer producer = new DefaultMQProducer("pace_producer");
    producer.setNamesrvAddr(args[0]);
    producer.start();
    int queues = producer.fetchPublishMessageQueues(topic).size();
    long deadline = System.nanoTime() + 60_000_000_000L;
    while (owned(consumer, topic) < queues) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("the consumer was not assigned every queue in time");
      }
      LockSupport.parkNanos(10_000_000L);
    }
    pace.run((body, acknowledged) -> producer.send(message(topic, body, delay), new SendCallback() {
      @Override
      public void onSuccess(SendResult result) {
        acknowledged.run();
      }

      @Override
      public void onException(Throwable failure) {
        failure.printStackTrace();
      }
    }));
    System.exit(0);
  }

  private static Message message(String topic, byte[] body, long delayMs) {
    Message message = new Message(topic, body);
    if (delayMs > 0) {
      message.setDelayTimeMs(delayMs);
    }
    return message;
  }

  private static long owned(DefaultMQPushConsumer consumer, String topic) {
    return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable()
        .keySet().stream().filter(queue -> queue.getTopic().equals(topic)).count();
  }
}
