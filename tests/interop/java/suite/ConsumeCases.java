package suite;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** Push consumers: where they begin, what they share, what they are told. */
final class ConsumeCases {
  private ConsumeCases() {}

  static void all(Suite suite) {
    suite.slow("consume.from-first", stage -> from(stage, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET));
    suite.quick("consume.from-last", stage -> from(stage, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET));
    suite.slow("consume.from-time", stage -> from(stage, ConsumeFromWhere.CONSUME_FROM_TIMESTAMP));
    suite.quick("consume.goes-on", ConsumeCases::goesOn);
    suite.quick("consume.two-members", ConsumeCases::twoMembers);
    suite.slow("consume.more-members-than-queues", ConsumeCases::moreMembers);
    suite.slow("consume.circle", stage -> allocated(stage, AllocateMessageQueueAveragelyByCircle::new));
    suite.slow("consume.average", stage -> allocated(stage, AllocateMessageQueueAveragely::new));
    suite.slow("consume.consistent-hash", stage -> allocated(stage, AllocateMessageQueueConsistentHash::new));
    suite.quick("consume.broadcast", ConsumeCases::broadcast);
    suite.slow("consume.broadcast-goes-on", ConsumeCases::broadcastGoesOn);
    suite.quick("consume.several-at-once", ConsumeCases::severalAtOnce);
    suite.slow("consume.suspended", ConsumeCases::suspended);
    suite.slow("consume.two-topics", ConsumeCases::twoTopics);
    suite.slow("consume.unsubscribed", ConsumeCases::unsubscribed);
    suite.slow("consume.two-groups", ConsumeCases::twoGroups);
    suite.quick("consume.tags", ConsumeCases::tags);
    suite.slow("consume.group-off", ConsumeCases::groupOff);
    suite.slow("consume.group-without-broadcast", ConsumeCases::noBroadcast);
    suite.slow("consume.topic-that-comes-later", ConsumeCases::laterTopic);
    suite.slow("consume.compressed-large", ConsumeCases::large);
    suite.slow("consume.members-as-told", ConsumeCases::members);
    suite.slow("consume.deleted-topic", ConsumeCases::deletedTopic);
  }

  private static DefaultMQPushConsumer member(Stage stage, String group, String instance, String topic, Deliveries deliveries)
      throws Exception {
    DefaultMQPushConsumer consumer = stage.push(group, instance);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener(deliveries.taking());
    return consumer;
  }

  /** The queues of a topic that a member has now. */
  static Set<Integer> queues(DefaultMQPushConsumer member, String topic) {
    return member.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
        .filter(queue -> queue.getTopic().equals(topic)).map(MessageQueue::getQueueId)
        .collect(Collectors.toCollection(TreeSet::new));
  }

  private static void from(Stage stage, ConsumeFromWhere where) throws Exception {
    String topic = stage.topic(1);
    stage.send(topic, "old1", "old2");
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, stage.group(), "a", topic, deliveries);
    consumer.setConsumeFromWhere(where);
    consumer.setConsumeTimestamp(UtilAll.timeMillisToHumanString3(System.currentTimeMillis() + 3_600_000));
    consumer.start();
    stage.send(topic, "new");
    deliveries.await("new");
    stage.say("a new group of a young queue: " + deliveries.sorted());
  }

  private static long stored(Stage stage, DefaultMQPushConsumer consumer, String topic) throws Exception {
    consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
    return consumer.getOffsetStore().readOffset(stage.queue(topic, 0), ReadOffsetType.READ_FROM_STORE);
  }

  private static void goesOn(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries first = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, group, "a", topic, first);
    consumer.start();
    stage.send(topic, "m1", "m2");
    first.await(2);
    Stage.until("the position", () -> stored(stage, consumer, topic) == 2);
    consumer.shutdown();
    stage.send(topic, "m3", "m4");
    Deliveries second = new Deliveries();
    member(stage, group, "b", topic, second).start();
    second.await("m4").await("m3");
    stage.say("then " + second.sorted());
  }

  private static void twoMembers(Stage stage) throws Exception {
    String topic = stage.topic(4);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer one = member(stage, group, "a", topic, deliveries);
    one.start();
    Stage.until("all queues", () -> queues(one, topic).size() == 4);
    DefaultMQPushConsumer other = member(stage, group, "b", topic, deliveries);
    other.start();
    Stage.until("two each", () -> queues(one, topic).size() == 2 && queues(other, topic).size() == 2);
    stage.say("alone 4, then " + queues(one, topic) + " and " + queues(other, topic));
    for (int number = 0; number < 12; number++) {
      stage.send(Stage.message(topic, "m" + (10 + number)), number % 4);
    }
    deliveries.await(12);
    one.shutdown();
    Stage.until("all queues", () -> queues(other, topic).size() == 4);
    for (int number = 0; number < 4; number++) {
      stage.send(Stage.message(topic, "n" + number), number);
      deliveries.await("n" + number);
    }
    Set<String> distinct = new HashSet<>();
    deliveries.all().forEach(message -> distinct.add(Stage.text(message)));
    stage.say("one leaves, the other has 4; of 16 messages came " + distinct.size());
  }

  private static void moreMembers(Stage stage) throws Exception {
    String topic = stage.topic(2);
    String group = stage.group();
    List<DefaultMQPushConsumer> members = new ArrayList<>();
    for (String instance : Clients.INSTANCES) {
      DefaultMQPushConsumer member = member(stage, group, instance, topic, new Deliveries());
      member.start();
      members.add(member);
    }
    Stage.until("one, one, none", () -> members.stream().map(member -> queues(member, topic).toString())
        .collect(Collectors.joining()).equals("[0][1][]"));
    stage.say("members a, b, c have [0], [1], []");
  }

  private static void allocated(Stage stage, java.util.function.Supplier<AllocateMessageQueueStrategy> strategy) throws Exception {
    String topic = stage.topic(8);
    String group = stage.group();
    List<DefaultMQPushConsumer> members = new ArrayList<>();
    for (String instance : Clients.INSTANCES) {
      DefaultMQPushConsumer member = member(stage, group, instance, topic, new Deliveries());
      member.setAllocateMessageQueueStrategy(strategy.get());
      member.start();
      members.add(member);
    }
    List<MessageQueue> all = new ArrayList<>();
    for (int queue = 0; queue < 8; queue++) {
      all.add(stage.queue(topic, queue));
    }
    List<String> ids = members.stream().map(member -> member.buildMQClientId()).sorted().collect(Collectors.toList());
    for (DefaultMQPushConsumer member : members) {
      Set<Integer> wanted = strategy.get().allocate(group, member.buildMQClientId(), all, ids).stream()
          .map(MessageQueue::getQueueId).collect(Collectors.toCollection(TreeSet::new));
      Stage.until("queues " + wanted, () -> queues(member, topic).equals(wanted));
    }
    stage.say(members.get(0).getAllocateMessageQueueStrategy().getName() + ": each of three members has what it should");
  }

  private static DefaultMQPushConsumer broadcasting(Stage stage, String group, String instance, String topic, Deliveries deliveries)
      throws Exception {
    DefaultMQPushConsumer consumer = member(stage, group, instance, topic, deliveries);
    consumer.setMessageModel(MessageModel.BROADCASTING);
    consumer.start();
    // Without a position it begins at the end.
    Stage.until("its queues", () -> !queues(consumer, topic).isEmpty());
    return consumer;
  }

  private static void broadcast(Stage stage) throws Exception {
    String topic = stage.topic(2);
    String group = stage.group();
    Deliveries one = new Deliveries();
    Deliveries other = new Deliveries();
    DefaultMQPushConsumer first = broadcasting(stage, group, "a", topic, one);
    broadcasting(stage, group, "b", topic, other);
    for (int number = 0; number < 4; number++) {
      stage.send(Stage.message(topic, "m" + number), number % 2);
    }
    one.await(4);
    other.await(4);
    stage.say("one " + one.sorted() + ", the other " + other.sorted());
    first.getDefaultMQPushConsumerImpl().persistConsumerOffset();
    stage.sayRefusal("positions at the broker", () -> {
      var stats = stage.clients.admin.examineConsumeStats(group);
      return stats.getOffsetTable().size();
    });
  }

  private static void broadcastGoesOn(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries first = new Deliveries();
    DefaultMQPushConsumer consumer = broadcasting(stage, group, "c", topic, first);
    stage.send(topic, "m1", "m2");
    first.await(2);
    Stage.until("the position", () -> stored(stage, consumer, topic) == 2);
    consumer.shutdown();
    stage.send(topic, "m3");
    Deliveries second = new Deliveries();
    broadcasting(stage, group, "c", topic, second);
    second.await("m3");
    stage.say("then " + second.bodies());
  }

  private static void severalAtOnce(Stage stage) throws Exception {
    String topic = stage.topic(1);
    List<Message> batch = new ArrayList<>();
    for (int number = 0; number < 25; number++) {
      batch.add(Stage.message(topic, "m" + (10 + number)));
    }
    stage.sendBatch(batch);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, stage.group(), "a", topic, deliveries);
    consumer.setConsumeMessageBatchMaxSize(10);
    consumer.start();
    deliveries.await(25);
    stage.say("calls with " + deliveries.sizes().stream().sorted().collect(Collectors.toList()));
  }

  private static void suspended(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, stage.group(), "a", topic, deliveries);
    consumer.start();
    stage.send(topic, "before");
    deliveries.await(1);
    consumer.suspend();
    stage.send(topic, "meanwhile");
    consumer.resume();
    deliveries.await("meanwhile");
    stage.say(deliveries.bodies());
  }

  private static void twoTopics(Stage stage) throws Exception {
    String one = stage.topic(1);
    String other = stage.topic(2);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, stage.group(), "a", one, deliveries);
    consumer.subscribe(other, "A");
    consumer.start();
    stage.send(one, "of one");
    stage.send(Stage.tagged(other, "A", "of the other"), 1);
    stage.send(Stage.tagged(other, "B", "not of it"), 1);
    stage.send(Stage.tagged(other, "A", "last"), 1);
    deliveries.await(3);
    stage.say(deliveries.sorted());
  }

  private static void unsubscribed(Stage stage) throws Exception {
    String one = stage.topic(1);
    String other = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, stage.group(), "a", one, deliveries);
    consumer.subscribe(other, "*");
    consumer.start();
    stage.send(one, "m1");
    stage.send(other, "m2");
    deliveries.await(2);
    consumer.unsubscribe(one);
    Stage.until("its queue is gone", () -> {
      consumer.getDefaultMQPushConsumerImpl().doRebalance();
      return queues(consumer, one).isEmpty();
    });
    stage.send(one, "unheard");
    stage.send(other, "heard");
    deliveries.await("heard");
    stage.say(deliveries.sorted());
  }

  private static void twoGroups(Stage stage) throws Exception {
    String topic = stage.topic(2);
    Deliveries one = new Deliveries();
    Deliveries other = new Deliveries();
    member(stage, stage.group(), "a", topic, one).start();
    member(stage, stage.group(), "a", topic, other).start();
    for (int number = 0; number < 6; number++) {
      stage.send(Stage.message(topic, "m" + number), number % 2);
    }
    one.await(6);
    other.await(6);
    stage.say(one.sorted() + " and " + other.sorted());
  }

  private static void tags(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(stage.group(), "a");
    consumer.subscribe(topic, "A || AaAa");
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    // The last but one has the hash code of a wanted one.
    for (String tag : List.of("A", "B", "a", "AaAa", "BBBB", "A")) {
      stage.send(Stage.tagged(topic, tag, "of " + tag), 0);
    }
    stage.send(topic, "of none");
    stage.send(Stage.tagged(topic, "A", "z"), 0);
    deliveries.await("z");
    stage.say(deliveries.sorted());
  }

  private static void group(Stage stage, SubscriptionGroupConfig config) throws Exception {
    stage.clients.admin.createAndUpdateSubscriptionGroupConfig(stage.clients.broker, config);
  }

  private static void groupOff(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    SubscriptionGroupConfig config = new SubscriptionGroupConfig();
    config.setGroupName(group);
    config.setConsumeEnable(false);
    group(stage, config);
    stage.send(topic, "m");
    var puller = stage.puller(group);
    stage.sayRefusal("a pull", () -> puller.pull(stage.queue(topic, 0), "*", 0, 32));
    config.setConsumeEnable(true);
    group(stage, config);
    stage.say("then " + Words.bodies(puller.pull(stage.queue(topic, 0), "*", 0, 32).getMsgFoundList()));
  }

  private static void noBroadcast(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    SubscriptionGroupConfig config = new SubscriptionGroupConfig();
    config.setGroupName(group);
    config.setConsumeBroadcastEnable(false);
    group(stage, config);
    Deliveries deliveries = new Deliveries();
    broadcasting(stage, group, "a", topic, deliveries);
    stage.send(topic, "m");
    var puller = stage.puller(stage.group());
    stage.say("others read " + Words.bodies(puller.pull(stage.queue(topic, 0), "*", 0, 32).getMsgFoundList()));
    config.setConsumeBroadcastEnable(true);
    group(stage, config);
    deliveries.await("m");
    stage.say("once it may: " + deliveries.bodies());
  }

  private static void laterTopic(Stage stage) throws Exception {
    String topic = stage.topicName();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, stage.group(), "a", topic, deliveries);
    consumer.start();
    stage.topic(topic, 1, 1, 6);
    stage.send(topic, "m");
    Stage.until("it is found", () -> {
      // As the client does by itself every 30 s and 20 s.
      var factory = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory();
      factory.updateTopicRouteInfoFromNameServer(topic);
      factory.rebalanceImmediately();
      return deliveries.all().size() > 0;
    });
    stage.say(deliveries.bodies());
  }

  private static void large(Stage stage) throws Exception {
    String topic = stage.topic(1);
    var producer = stage.producer("a");
    producer.setCompressMsgBodyOverHowmuch(4096);
    Deliveries deliveries = new Deliveries();
    member(stage, stage.group(), "a", topic, deliveries).start();
    for (int size : new int[] {100, 5_000, 1_000_000}) {
      producer.send(Stage.message(topic, "x".repeat(size)), stage.queue(topic, 0));
    }
    deliveries.await(3);
    for (int size : new int[] {100, 5_000, 1_000_000}) {
      stage.say(size + " bytes: " + deliveries.of("x".repeat(size)).size());
    }
  }

  private static void members(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    DefaultMQPushConsumer consumer = member(stage, group, "a", topic, new Deliveries());
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.start();
    Stage.until("its heartbeat", () -> !stage.clients.admin.examineConsumerConnectionInfo(group).getConnectionSet().isEmpty());
    var told = stage.clients.admin.examineConsumerConnectionInfo(group);
    stage.say(told.getConsumeType() + ", " + told.getMessageModel() + ", " + told.getConsumeFromWhere());
    stage.say("subscribed to " + new TreeSet<>(told.getSubscriptionTable().keySet()));
    var client = told.getConnectionSet().iterator().next();
    stage.say("client id is the member's: " + client.getClientId().equals(consumer.buildMQClientId()) + ", " + client.getLanguage());
    stage.say("groups of the topic " + stage.clients.admin.queryTopicConsumeByWho(topic).getGroupList());
    stage.sayRefusal("members of nobody", () -> stage.clients.admin.examineConsumerConnectionInfo(stage.group()));
  }

  private static void deletedTopic(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, group, "a", topic, deliveries);
    consumer.start();
    stage.send(topic, "m1", "m2");
    deliveries.await(2);
    Stage.until("the position", () -> stored(stage, consumer, topic) == 2);
    consumer.shutdown();
    stage.clients.admin.deleteTopic(topic, "DefaultCluster");
    Stage.until("no route", () -> stage.refusal(() -> stage.clients.admin.examineTopicRouteInfo(topic)).contains("17"));
    stage.sayRefusal("a route", () -> stage.clients.admin.examineTopicRouteInfo(topic));
    stage.topic(topic, 1, 1, 6);
    stage.say("made again, it ends at " + stage.clients.admin.maxOffset(stage.queue(topic, 0)));
  }
}
