import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** By DefaultLitePullConsumer, which clients have from 4.6.0 on; RocketmqDriver finds it by name. */
final class LiteFollower extends Follower {
  private final DefaultLitePullConsumer consumer;

  LiteFollower(String name, String namesrv, String group, String topic) throws Exception {
    super(name);
    consumer = new DefaultLitePullConsumer(group);
    consumer.setNamesrvAddr(namesrv);
    consumer.setInstanceName(name);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setAutoCommitIntervalMillis(1_000);
    consumer.setPersistConsumerOffsetInterval(500);
    consumer.subscribe(topic, "*");
    consumer.start();
  }

  @Override
  void step() {
    consumer.poll(200).forEach(this::tell);
  }

  @Override
  void close() {
    consumer.shutdown();
  }
}
