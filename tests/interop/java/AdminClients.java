import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** Live producers and consumers, for administration to look at. */
final class AdminClients {
  private static final long LIMIT_NANOS = 120_000_000_000L;

  private final Map<String, DefaultMQPushConsumer> members = new HashMap<>();
  private final Map<String, AtomicLong> consumed = new HashMap<>();
  private final Map<String, DefaultMQProducer> producers = new HashMap<>();

  void handle(String verb, Wire.Args words) throws Exception {
    switch (verb) {
      case "join": join(words); break;
      case "consumed": consumed(words); break;
      case "persist": persist(words); break;
      case "leave":
        DefaultMQPushConsumer gone = members.remove(words.need("name"));
        Admins.hastened(gone::shutdown);
        break;
      case "produce": produce(words); break;
      case "give": give(words); break;
      case "stop":
        DefaultMQProducer stopped = producers.remove(words.need("name"));
        Admins.hastened(stopped::shutdown);
        break;
      default: throw new IllegalArgumentException("no such command: " + verb);
    }
  }

  /**
   * join name= group= topic= [tags=] [mode=orderly|broadcast] [fail=true]: a member that consumes all
   * there is; returns when it has queues.
   */
  private void join(Wire.Args words) throws Exception {
    String topic = words.need("topic");
    String mode = words.or("mode", "concurrent");
    boolean fails = words.or("fail", "false").equals("true");
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(words.need("group"));
    consumer.setInstanceName(words.need("name"));
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setConsumeThreadMin(2);
    consumer.setConsumeThreadMax(2);
    if (words.or("retries", null) != null) {
      consumer.setMaxReconsumeTimes(words.number("retries", 0));
    }
    if (mode.equals("broadcast")) {
      consumer.setMessageModel(MessageModel.BROADCASTING);
    }
    consumer.subscribe(topic, words.or("tags", "*"));
    AtomicLong count = new AtomicLong();
    consumed.put(words.need("name"), count);
    if (mode.equals("orderly")) {
      consumer.registerMessageListener((MessageListenerOrderly) (found, context) -> {
        count.addAndGet(found.size());
        return ConsumeOrderlyStatus.SUCCESS;
      });
    } else {
      consumer.registerMessageListener((MessageListenerConcurrently) (found, context) -> {
        count.addAndGet(found.size());
        return fails ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
      });
    }
    consumer.start();
    members.put(words.need("name"), consumer);
    until(() -> consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()
        .stream().anyMatch(queue -> queue.getTopic().equals(topic)), "queues of " + topic);
  }

  /** persist name= topic= count=: has that member store its positions, once it has got that far on all queues. */
  private void persist(Wire.Args words) throws Exception {
    DefaultMQPushConsumerImpl member = members.get(words.need("name")).getDefaultMQPushConsumerImpl();
    String topic = words.need("topic");
    int wanted = words.number("count", 0);
    until(() -> member.getRebalanceImpl().getProcessQueueTable().keySet().stream()
        .filter(queue -> queue.getTopic().equals(topic))
        .mapToLong(queue -> member.getOffsetStore().readOffset(queue, ReadOffsetType.READ_FROM_MEMORY))
        .sum() == wanted, "positions of " + wanted);
    member.persistConsumerOffset();
  }

  /** consumed name= count=: waits until that member has been given so many messages. */
  private void consumed(Wire.Args words) throws Exception {
    AtomicLong count = consumed.get(words.need("name"));
    int wanted = words.number("count", 0);
    until(() -> count.get() >= wanted, wanted + " messages");
  }

  /** produce name= group= topic=: a producer that the broker knows of. */
  private void produce(Wire.Args words) throws Exception {
    DefaultMQProducer producer = new DefaultMQProducer(words.need("group"));
    producer.setInstanceName(words.need("name"));
    producer.start();
    producers.put(words.need("name"), producer);
    producer.getDefaultMQProducerImpl().getMqClientFactory().updateTopicRouteInfoFromNameServer(words.need("topic"));
    producer.getDefaultMQProducerImpl().getMqClientFactory().sendHeartbeatToAllBrokerWithLock();
  }

  /** give name= topic= queue= [count=] [tag=]: messages of that producer, with keys `give0` and so on. */
  private void give(Wire.Args words) throws Exception {
    DefaultMQProducer producer = producers.get(words.need("name"));
    String topic = words.need("topic");
    List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
    for (int i = 0; i < words.number("count", 1); i++) {
      Message message = new Message(topic, words.or("tag", "given"), "give" + i,
          ("body" + i).getBytes(StandardCharsets.UTF_8));
      MessageQueue queue = queues.stream().filter(one -> one.getQueueId() == words.number("queue", 0))
          .findFirst().orElseThrow();
      producer.send(message, queue, 30_000);
    }
  }

  private interface Condition {
    boolean holds() throws Exception;
  }

  private static void until(Condition condition, String what) throws Exception {
    long deadline = System.nanoTime() + LIMIT_NANOS;
    while (!condition.holds()) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("waited in vain for " + what);
      }
      Thread.sleep(20);
    }
  }
}
