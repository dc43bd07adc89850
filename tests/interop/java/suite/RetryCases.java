package suite;

import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListener;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** What listeners fail with: how often and after what time it comes again, and where it ends. */
final class RetryCases {
  private RetryCases() {}

  static void all(Suite suite) {
    suite.slow("retry.max-0", stage -> failing(stage, 0));
    suite.quick("retry.max-1", stage -> failing(stage, 1));
    suite.slow("retry.max-2", stage -> failing(stage, 2));
    suite.slow("retry.max-5", stage -> failing(stage, 5));
    suite.slow("retry.default-of-16", stage -> failing(stage, -1));
    suite.quick("retry.own-level", RetryCases::ownLevel);
    suite.slow("retry.at-once-to-the-dead", RetryCases::atOnce);
    suite.slow("retry.exception", stage -> odd(stage, true));
    suite.slow("retry.null", stage -> odd(stage, false));
    suite.slow("retry.then-taken", RetryCases::thenTaken);
    suite.slow("retry.what-it-looks-like", RetryCases::looks);
    suite.quick("retry.dead-letter", RetryCases::deadLetter);
    suite.slow("retry.dead-letter-consumed", RetryCases::deadLetterConsumed);
    suite.slow("retry.part-of-a-batch", RetryCases::partOfBatch);
    suite.quick("retry.others-go-on", RetryCases::othersGoOn);
    suite.quick("retry.not-when-broadcast", RetryCases::broadcast);
    suite.slow("retry.group-without-retry-queues", RetryCases::noRetryQueues);
    suite.slow("retry.max-of-the-group", RetryCases::groupMax);
    suite.slow("retry.sent-back-by-hand", RetryCases::byHand);
    suite.slow("retry.orderly-max", RetryCases::orderlyMax);
    suite.slow("retry.in-a-group-with-tags", RetryCases::withTags);
    suite.stock("retry.stock.spacing", stage -> failing(stage, 2));
  }

  static DefaultMQPushConsumer member(Stage stage, String group, String topic, int max, MessageListener listener)
      throws Exception {
    DefaultMQPushConsumer consumer = stage.push(group, "a");
    consumer.subscribe(topic, "*");
    consumer.setMaxReconsumeTimes(max);
    if (listener instanceof MessageListenerOrderly) {
      consumer.registerMessageListener((MessageListenerOrderly) listener);
    } else {
      consumer.registerMessageListener((MessageListenerConcurrently) listener);
    }
    consumer.start();
    stage.clients.findRetriesSoon(consumer, group);
    return consumer;
  }

  static MessageExt dead(Stage stage, String group) throws Exception {
    String topic = "%DLQ%" + group;
    Stage.until("a dead letter", () -> stage.clients.admin.maxOffset(stage.queue(topic, 0)) > 0);
    return stage.read(topic).get(0);
  }

  /** Seconds of each retry at least, by the times the broker stored them. */
  private static String spacing(List<MessageExt> tries) {
    StringBuilder words = new StringBuilder();
    for (int at = 1; at < tries.size(); at++) {
      long waited = tries.get(at).getStoreTimestamp() - tries.get(at - 1).getStoreTimestamp();
      int level = 2 + at;
      long wanted = Delays.secondsOf(level) * 1000;
      words.append(at > 1 ? "," : "").append(waited >= wanted ? Delays.secondsOf(level) : "TOO EARLY " + waited);
    }
    return words.toString();
  }

  private static void failing(Stage stage, int max) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    member(stage, group, topic, max, deliveries.failing(message -> true));
    stage.send(topic, "poison");
    MessageExt dead = dead(stage, group);
    stage.say("tried " + deliveries.times("poison"));
    stage.say("seconds between at least " + spacing(deliveries.of("poison")));
    stage.say("then dead, reconsumed " + dead.getReconsumeTimes());
  }

  private static void ownLevel(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    member(stage, stage.group(), topic, -1, (MessageListenerConcurrently) (messages, context) -> {
      deliveries.note(messages);
      context.setDelayLevelWhenNextConsume(messages.get(0).getReconsumeTimes() + 1);
      return deliveries.all().size() < 3 ? ConsumeConcurrentlyStatus.RECONSUME_LATER
          : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    stage.send(topic, "m");
    deliveries.await(3);
    List<MessageExt> tries = deliveries.of("m");
    stage.say("tried " + deliveries.times("m"));
    stage.say("1 s at least: " + (tries.get(1).getStoreTimestamp() - tries.get(0).getStoreTimestamp() >= 1000));
    stage.say("2 s at least: " + (tries.get(2).getStoreTimestamp() - tries.get(1).getStoreTimestamp() >= 2000));
  }

  private static void atOnce(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    member(stage, group, topic, 5, (MessageListenerConcurrently) (messages, context) -> {
      deliveries.note(messages);
      context.setDelayLevelWhenNextConsume(-1);
      return ConsumeConcurrentlyStatus.RECONSUME_LATER;
    });
    stage.send(topic, "m");
    MessageExt dead = dead(stage, group);
    stage.say("tried " + deliveries.times("m") + ", then dead, reconsumed " + dead.getReconsumeTimes());
  }

  private static void odd(Stage stage, boolean throwing) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    member(stage, stage.group(), topic, -1, (MessageListenerConcurrently) (messages, context) -> {
      deliveries.note(messages);
      context.setDelayLevelWhenNextConsume(1);
      if (deliveries.all().size() > 1) {
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
      }
      if (throwing) {
        throw new IllegalStateException("on purpose");
      }
      return null;
    });
    stage.send(topic, "m");
    deliveries.await(2);
    stage.say("tried " + deliveries.times("m"));
  }

  private static void thenTaken(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer =
        member(stage, group, topic, 3, deliveries.failing(message -> message.getReconsumeTimes() == 0));
    stage.send(topic, "m");
    deliveries.await(2);
    stage.say("tried " + deliveries.times("m"));
    Stage.until("no lag", () -> {
      consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
      return stage.clients.admin.examineConsumeStats(group).computeTotalDiff() == 0;
    });
    var queues = stage.clients.admin.examineConsumeStats(group).getOffsetTable();
    stage.say("positions " + queues.entrySet().stream()
        .map(queue -> queue.getKey().getTopic() + " " + queue.getValue().getConsumerOffset()).collect(Collectors.toCollection(TreeSet::new)));
  }

  private static void looks(Stage stage) throws Exception {
    String topic = stage.topic(2);
    Deliveries deliveries = new Deliveries();
    member(stage, stage.group(), topic, 3, deliveries.failing(message -> message.getReconsumeTimes() == 0));
    Message message = Stage.tagged(topic, "tag", "m");
    message.setKeys("key");
    message.setFlag(5);
    message.putUserProperty("user", "value");
    stage.send(message, 1);
    deliveries.await(2);
    MessageExt first = deliveries.all().get(0);
    MessageExt second = deliveries.all().get(1);
    stage.say("first of " + first.getTopic() + " queue " + first.getQueueId() + " with "
        + Words.names(first, "CONSUME_START_TIME"));
    stage.say("then of " + second.getTopic() + " queue " + second.getQueueId() + " with "
        + Words.names(second, "CONSUME_START_TIME"));
    stage.say("flag " + second.getFlag() + ", tag " + second.getTags() + ", key " + second.getKeys() + ", user "
        + second.getUserProperty("user"));
    stage.say("same id: " + first.getMsgId().equals(second.getMsgId()) + ", same born time: "
        + (first.getBornTimestamp() == second.getBornTimestamp()));
    stage.say("names where it was first: " + first.getProperty("UNIQ_KEY").equals(second.getProperty("UNIQ_KEY")) + ", "
        + (second.getProperty("ORIGIN_MESSAGE_ID") != null) + ", real topic " + second.getProperty("REAL_TOPIC"));
  }

  private static void deadLetter(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    member(stage, group, topic, 0, new Deliveries().failing(message -> true));
    Message message = Stage.tagged(topic, "tag", "m");
    message.setKeys("key");
    message.putUserProperty("user", "value");
    stage.send(message, 0);
    MessageExt dead = dead(stage, group);
    stage.say("in " + dead.getTopic() + " queue " + dead.getQueueId() + " at " + dead.getQueueOffset() + ": " + Stage.text(dead));
    stage.say("properties " + Words.names(dead));
    stage.say("of " + dead.getProperty("RETRY_TOPIC") + ", dead of " + dead.getProperty("DLQ_ORIGIN_TOPIC") + ", tag "
        + dead.getTags() + ", key " + dead.getKeys() + ", delay " + dead.getProperty("DELAY"));
    var queues = stage.clients.admin.examineTopicRouteInfo("%DLQ%" + group).getQueueDatas().get(0);
    stage.say("queues " + queues.getReadQueueNums() + ", " + queues.getWriteQueueNums() + ", permission " + queues.getPerm());
    var retries = stage.clients.admin.examineTopicRouteInfo("%RETRY%" + group).getQueueDatas().get(0);
    stage.say("of retries " + retries.getReadQueueNums() + ", " + retries.getWriteQueueNums() + ", permission "
        + retries.getPerm());
  }

  private static void deadLetterConsumed(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    member(stage, group, topic, 0, new Deliveries().failing(message -> true));
    stage.send(topic, "m");
    dead(stage, group);
    Deliveries undertaker = new Deliveries();
    member(stage, stage.group(), "%DLQ%" + group, -1, undertaker.taking());
    undertaker.await(1);
    MessageExt seen = undertaker.all().get(0);
    stage.say(Stage.text(seen) + " of " + seen.getTopic() + ", reconsumed " + seen.getReconsumeTimes());
  }

  private static void partOfBatch(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.sendBatch(new java.util.ArrayList<>(List.of(Stage.message(topic, "a"), Stage.message(topic, "b"),
        Stage.message(topic, "c"), Stage.message(topic, "d"))));
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(stage.group(), "a");
    consumer.subscribe(topic, "*");
    consumer.setConsumeMessageBatchMaxSize(4);
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      deliveries.note(messages);
      context.setAckIndex(messages.size() == 4 ? 1 : Integer.MAX_VALUE);
      context.setDelayLevelWhenNextConsume(1);
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    stage.clients.findRetriesSoon(consumer, consumer.getConsumerGroup());
    deliveries.await(6);
    stage.say("first call " + deliveries.sizes().get(0));
    stage.say("a " + deliveries.times("a") + ", b " + deliveries.times("b") + ", c " + deliveries.times("c") + ", d "
        + deliveries.times("d"));
  }

  private static void othersGoOn(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    member(stage, stage.group(), topic, 3,
        deliveries.failing(message -> Stage.text(message).equals("poison") && message.getReconsumeTimes() == 0));
    stage.send(topic, "poison", "m1", "m2", "m3");
    deliveries.await(5);
    stage.say("poison " + deliveries.times("poison") + ", m1 " + deliveries.times("m1") + ", m2 " + deliveries.times("m2")
        + ", m3 " + deliveries.times("m3"));
    stage.say("last of all " + Stage.text(deliveries.all().get(4)));
  }

  private static void broadcast(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(group, "a");
    consumer.setMessageModel(MessageModel.BROADCASTING);
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener(deliveries.failing(message -> true));
    consumer.start();
    Stage.until("its queue", () -> !ConsumeCases.queues(consumer, topic).isEmpty());
    stage.send(topic, "fails", "after");
    deliveries.await("after");
    stage.say("fails " + deliveries.times("fails") + ", after " + deliveries.times("after"));
    stage.sayRefusal("retries", () -> stage.clients.admin.examineTopicRouteInfo("%RETRY%" + group));
  }

  private static void noRetryQueues(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    SubscriptionGroupConfig config = new SubscriptionGroupConfig();
    config.setGroupName(group);
    config.setRetryQueueNums(0);
    stage.clients.admin.createAndUpdateSubscriptionGroupConfig(stage.clients.broker, config);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer =
        member(stage, group, topic, 3, deliveries.failing(message -> Stage.text(message).equals("lost")));
    stage.send(topic, "lost", "after");
    deliveries.await("after");
    Stage.until("the position moves", () -> {
      consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
      return consumer.getOffsetStore().readOffset(stage.queue(topic, 0),
          org.apache.rocketmq.client.consumer.store.ReadOffsetType.READ_FROM_STORE) == 2;
    });
    stage.say("lost " + deliveries.times("lost") + ", after " + deliveries.times("after"));
    stage.sayRefusal("a dead letter", () -> stage.clients.admin.examineTopicRouteInfo("%DLQ%" + group));
  }

  private static void groupMax(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    SubscriptionGroupConfig config = new SubscriptionGroupConfig();
    config.setGroupName(group);
    config.setRetryMaxTimes(1);
    stage.clients.admin.createAndUpdateSubscriptionGroupConfig(stage.clients.broker, config);
    Deliveries deliveries = new Deliveries();
    member(stage, group, topic, 3, deliveries.failing(message -> true));
    stage.send(topic, "m");
    MessageExt dead = dead(stage, group);
    stage.say("group 1, member 3: tried " + deliveries.times("m") + ", dead with " + dead.getReconsumeTimes());
  }

  private static void byHand(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    stage.send(topic, "m");
    DefaultMQPullConsumer puller = stage.puller(group);
    MessageExt message = puller.pull(stage.queue(topic, 0), "*", 0, 32).getMsgFoundList().get(0);
    puller.sendMessageBack(message, 1);
    String retries = "%RETRY%" + group;
    Stage.until("a retry", () -> stage.clients.admin.maxOffset(stage.queue(retries, 0)) > 0);
    MessageExt again = stage.read(retries).get(0);
    stage.say(Stage.text(again) + ", reconsumed " + again.getReconsumeTimes() + ", of " + again.getProperty("RETRY_TOPIC")
        + ", 1 s at least: " + (again.getStoreTimestamp() - message.getStoreTimestamp() >= 1000));
    message.setCommitLogOffset(message.getCommitLogOffset() + 1_000_000_000);
    stage.sayRefusal("one that is not there", () -> {
      stage.clients.api().consumerSendMessageBack(stage.clients.broker, stage.brokerName(), message, group, 1,
          Clients.TIMEOUT_MS, 16);
      return "done";
    }, "[0-9]{6,}", "PLACE");
  }

  private static void orderlyMax(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    member(stage, group, topic, 2, deliveries.orderly(message -> Stage.text(message).equals("poison")
        ? org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        : org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus.SUCCESS));
    stage.send(topic, "poison", "after");
    MessageExt dead = dead(stage, group);
    deliveries.await("after");
    List<MessageExt> all = deliveries.all();
    int after = 0;
    while (!Stage.text(all.get(after)).equals("after")) {
      after++;
    }
    stage.say("tried " + deliveries.times("poison") + ", the next one after " + after + " tries");
    stage.say("dead, reconsumed " + dead.getReconsumeTimes() + ", of " + dead.getProperty("RETRY_TOPIC"));
  }

  private static void withTags(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(stage.group(), "a");
    consumer.subscribe(topic, "A || B");
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      deliveries.note(messages);
      context.setDelayLevelWhenNextConsume(1);
      return messages.get(0).getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER
          : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    stage.clients.findRetriesSoon(consumer, consumer.getConsumerGroup());
    for (String tag : List.of("A", "C", "B")) {
      stage.send(Stage.tagged(topic, tag, tag), 0);
    }
    deliveries.await(4);
    stage.say("A " + deliveries.times("A") + ", B " + deliveries.times("B") + ", C " + deliveries.times("C"));
  }
}
