package suite;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.body.LockBatchRequestBody;
import org.apache.rocketmq.remoting.protocol.body.UnlockBatchRequestBody;

/** Order within a queue, whoever has it, and the locks that hold it. */
final class OrderCases {
  private OrderCases() {}

  static void all(Suite suite) {
    suite.quick("order.one-member", OrderCases::oneMember);
    suite.quick("order.suspended-in-place", OrderCases::suspended);
    suite.slow("order.exception", OrderCases::exception);
    suite.quick("order.own-commits", OrderCases::ownCommits);
    suite.slow("order.one-at-a-time", OrderCases::oneAtATime);
    suite.slow("order.while-members-come-and-go", OrderCases::rebalanced);
    suite.slow("order.by-key", OrderCases::byKey);
    suite.quick("order.locks", OrderCases::locks);
    suite.slow("order.locks-of-two-groups", OrderCases::locksOfGroups);
    suite.slow("order.lock-kept-by-its-holder", OrderCases::keptLock);
    suite.slow("order.lock-given-back-at-the-end", OrderCases::givenBack);
    suite.slow("order.lock-that-lapses", OrderCases::lapsing);
  }

  private static DefaultMQPushConsumer member(Stage stage, String group, String instance, String topic,
      MessageListenerOrderly listener) throws Exception {
    DefaultMQPushConsumer consumer = stage.push(group, instance);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener(listener);
    consumer.start();
    return consumer;
  }

  private static void oneMember(Stage stage) throws Exception {
    String topic = stage.topic(3);
    Deliveries deliveries = new Deliveries();
    member(stage, stage.group(), "a", topic, deliveries.takingInOrder());
    for (int number = 0; number < 12; number++) {
      stage.send(Stage.message(topic, "m" + number), number % 3);
    }
    deliveries.await(12);
    stage.say(deliveries.byQueue());
  }

  private static void suspended(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    member(stage, stage.group(), "a", topic, deliveries.orderly(message ->
        Stage.text(message).equals("m1") && message.getReconsumeTimes() < 3 ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            : ConsumeOrderlyStatus.SUCCESS));
    stage.send(topic, "m0", "m1", "m2");
    deliveries.await("m2");
    stage.say(deliveries.bodies());
    stage.say("m1 reconsumed " + deliveries.times("m1"));
  }

  private static void exception(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    member(stage, stage.group(), "a", topic, deliveries.orderly(message -> {
      if (Stage.text(message).equals("m0") && message.getReconsumeTimes() == 0) {
        throw new IllegalStateException("on purpose");
      }
      return Stage.text(message).equals("m1") && message.getReconsumeTimes() == 0 ? null : ConsumeOrderlyStatus.SUCCESS;
    }));
    stage.send(topic, "m0", "m1", "m2");
    deliveries.await("m2");
    stage.say(deliveries.bodies());
  }

  private static void ownCommits(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, group, "a", topic, (messages, context) -> {
      context.setAutoCommit(false);
      context.setSuspendCurrentQueueTimeMillis(100);
      deliveries.note(messages);
      MessageExt message = messages.get(0);
      boolean again = deliveries.of("m2").size() > 1;
      switch (Stage.text(message)) {
        case "m0": return ConsumeOrderlyStatus.COMMIT;
        case "m2": return again ? ConsumeOrderlyStatus.COMMIT : ConsumeOrderlyStatus.ROLLBACK;
        default: return ConsumeOrderlyStatus.SUCCESS;
      }
    });
    stage.send(topic, "m0", "m1", "m2", "m3");
    deliveries.await("m3");
    stage.say(deliveries.bodies());
    Stage.until("the position", () -> {
      consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
      var position = stage.clients.admin.examineConsumeStats(group).getOffsetTable().get(stage.queue(topic, 0));
      return position != null && position.getConsumerOffset() == 3;
    });
    stage.say("position 3: the last one is not committed");
  }

  private static void oneAtATime(Stage stage) throws Exception {
    String topic = stage.topic(2);
    Map<Integer, AtomicInteger> running = new ConcurrentHashMap<>();
    AtomicInteger most = new AtomicInteger();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(stage.group(), "a");
    consumer.subscribe(topic, "*");
    consumer.setConsumeThreadMin(8);
    consumer.setConsumeThreadMax(8);
    consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
      AtomicInteger now = running.computeIfAbsent(messages.get(0).getQueueId(), queue -> new AtomicInteger());
      most.accumulateAndGet(now.incrementAndGet(), Math::max);
      Thread.yield();
      deliveries.note(messages);
      now.decrementAndGet();
      return ConsumeOrderlyStatus.SUCCESS;
    });
    consumer.start();
    for (int number = 0; number < 40; number++) {
      stage.send(Stage.message(topic, "m" + number), number % 2);
    }
    deliveries.await(40);
    stage.say("of one queue at a time " + most.get());
  }

  /** Were the messages of each queue seen first in the order of their places, and all of them? */
  private static String judged(List<MessageExt> seen, int queues, int each) {
    Map<Integer, Long> last = new HashMap<>();
    Set<String> distinct = new HashSet<>();
    int outOfOrder = 0;
    for (MessageExt message : seen) {
      if (!distinct.add(message.getQueueId() + "/" + message.getQueueOffset())) {
        continue;
      }
      long before = last.getOrDefault(message.getQueueId(), -1L);
      outOfOrder += message.getQueueOffset() != before + 1 ? 1 : 0;
      last.put(message.getQueueId(), message.getQueueOffset());
    }
    return "of " + queues * each + " came " + distinct.size() + ", out of order " + outOfOrder;
  }

  private static void rebalanced(Stage stage) throws Exception {
    String topic = stage.topic(4);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    Set<String> members = java.util.Collections.synchronizedSet(new TreeSet<>());
    DefaultMQPushConsumer one = member(stage, group, "a", topic, noting(deliveries, members, "a"));
    fill(stage, topic, 0);
    deliveries.await(40);
    DefaultMQPushConsumer other = member(stage, group, "b", topic, noting(deliveries, members, "b"));
    fill(stage, topic, 10);
    Stage.until("both have messages", () -> ConsumeCases.queues(one, topic).size() == 2 && ConsumeCases.queues(other, topic).size() == 2);
    fill(stage, topic, 20);
    deliveries.await(120);
    one.shutdown();
    fill(stage, topic, 30);
    Stage.until("all", () -> new HashSet<>(bodies(deliveries.all())).size() == 160);
    stage.say("members " + members + ": " + judged(deliveries.all(), 4, 40));
  }

  private static MessageListenerOrderly noting(Deliveries deliveries, Set<String> members, String name) {
    MessageListenerOrderly taking = deliveries.takingInOrder();
    return (messages, context) -> {
      members.add(name);
      return taking.consumeMessage(messages, context);
    };
  }

  private static List<String> bodies(List<MessageExt> messages) {
    List<String> bodies = new ArrayList<>();
    messages.forEach(message -> bodies.add(Stage.text(message)));
    return bodies;
  }

  private static void fill(Stage stage, String topic, int first) throws Exception {
    for (int number = first; number < first + 10; number++) {
      for (int queue = 0; queue < 4; queue++) {
        stage.send(Stage.message(topic, queue + "/" + number), queue);
      }
    }
  }

  private static void byKey(Stage stage) throws Exception {
    String topic = stage.topic(4);
    Deliveries deliveries = new Deliveries();
    member(stage, stage.group(), "a", topic, deliveries.takingInOrder());
    for (int number = 0; number < 30; number++) {
      int key = number % 5;
      stage.clients.producer.send(Stage.message(topic, key + ":" + number),
          (queues, message, argument) -> queues.get((int) argument % queues.size()), key);
    }
    deliveries.await(30);
    StringBuilder orders = new StringBuilder();
    for (int key = 0; key < 5; key++) {
      String prefix = key + ":";
      StringBuilder own = new StringBuilder();
      deliveries.all().stream().map(Stage::text).filter(body -> body.startsWith(prefix)).forEach(body -> own.append(body.substring(2)).append(' '));
      orders.append(key).append(": ").append(own);
    }
    stage.say(orders.toString().trim());
  }

  private static Set<Integer> lock(Stage stage, String group, String client, Set<MessageQueue> queues) throws Exception {
    LockBatchRequestBody body = new LockBatchRequestBody();
    body.setConsumerGroup(group);
    body.setClientId(client);
    body.setMqSet(queues);
    Set<Integer> locked = new TreeSet<>();
    stage.clients.api().lockBatchMQ(stage.clients.broker, body, Clients.TIMEOUT_MS).forEach(queue -> locked.add(queue.getQueueId()));
    return locked;
  }

  private static void unlock(Stage stage, String group, String client, Set<MessageQueue> queues) throws Exception {
    UnlockBatchRequestBody body = new UnlockBatchRequestBody();
    body.setConsumerGroup(group);
    body.setClientId(client);
    body.setMqSet(queues);
    stage.clients.api().unlockBatchMQ(stage.clients.broker, body, Clients.TIMEOUT_MS, false);
  }

  private static Set<MessageQueue> queues(Stage stage, String topic, int... ids) throws Exception {
    Set<MessageQueue> queues = new HashSet<>();
    for (int id : ids) {
      queues.add(stage.queue(topic, id));
    }
    return queues;
  }

  private static void locks(Stage stage) throws Exception {
    String topic = stage.topic(3);
    String group = stage.group();
    stage.say("one locks 0 and 1: " + lock(stage, group, "one", queues(stage, topic, 0, 1)));
    stage.say("two asks for all: " + lock(stage, group, "two", queues(stage, topic, 0, 1, 2)));
    stage.say("one asks for all: " + lock(stage, group, "one", queues(stage, topic, 0, 1, 2)));
    unlock(stage, group, "two", queues(stage, topic, 0, 1, 2));
    stage.say("two gives back all, one of them its own; then three asks: " + lock(stage, group, "three", queues(stage, topic, 0, 1, 2)));
    unlock(stage, group, "one", queues(stage, topic, 0));
    stage.say("one gives back 0, three asks: " + lock(stage, group, "three", queues(stage, topic, 0, 1, 2)));
    stage.say("of none: " + lock(stage, group, "three", queues(stage, topic)));
  }

  private static void locksOfGroups(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.say("one group: " + lock(stage, stage.group(), "one", queues(stage, topic, 0)));
    stage.say("another: " + lock(stage, stage.group(), "two", queues(stage, topic, 0)));
  }

  private static void keptLock(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    member(stage, group, "a", topic, deliveries.takingInOrder());
    stage.send(topic, "m");
    deliveries.await(1);
    stage.say("while a member has the queue, another asks: " + lock(stage, group, "another", queues(stage, topic, 0)));
  }

  private static void givenBack(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, group, "a", topic, deliveries.takingInOrder());
    stage.send(topic, "m");
    deliveries.await(1);
    long began = System.nanoTime();
    consumer.shutdown();
    Stage.until("the lock", () -> !lock(stage, group, "another", queues(stage, topic, 0)).isEmpty());
    stage.say("another has it before it would lapse: " + (System.nanoTime() - began < 55_000_000_000L));
  }

  private static void lapsing(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    long began = System.nanoTime();
    lock(stage, group, "one", queues(stage, topic, 0));
    stage.say("two at once: " + lock(stage, group, "two", queues(stage, topic, 0)));
    Stage.until("the lock lapses", () -> !lock(stage, group, "two", queues(stage, topic, 0)).isEmpty());
    stage.say("two after a minute at least: " + (System.nanoTime() - began >= 59_500_000_000L));
    stage.say("one again: " + lock(stage, group, "one", queues(stage, topic, 0)));
  }
}
