package suite;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.tools.admin.api.MessageTrack;

/** Messages found again: by key, by id, by time, and what became of them. */
final class QueryCases {
  private QueryCases() {}

  static void all(Suite suite) {
    suite.quick("query.by-key", QueryCases::byKey);
    suite.slow("query.by-key.most", QueryCases::most);
    suite.slow("query.by-key.within-times", QueryCases::withinTimes);
    suite.slow("query.by-key.hash-collision", QueryCases::collision);
    suite.slow("query.by-unique-key", QueryCases::byUniqueKey);
    suite.slow("query.by-key.delayed", QueryCases::delayed);
    suite.slow("query.what-became-of-it", QueryCases::track);
    suite.slow("query.consumed-by-hand", QueryCases::directly);
    suite.slow("query.topic-status", QueryCases::topicStatus);
    suite.quick("query.progress", QueryCases::progress);
    suite.slow("query.running-member", QueryCases::running);
  }

  private static Message keyed(String topic, String keys, String body) {
    Message message = Stage.message(topic, body);
    message.setKeys(keys);
    return message;
  }

  private static List<MessageExt> find(Stage stage, String topic, String key, int most, long begin, long end) throws Exception {
    return stage.clients.admin.queryMessage(topic, key, most, begin, end).getMessageList();
  }

  private static String found(Stage stage, String topic, String key) {
    return stage.refusal(() -> {
      throw new Found(Words.sortedBodies(find(stage, topic, key, 32, 0, Long.MAX_VALUE)));
    });
  }

  /** Carries bodies out of {@link Stage#refusal}. */
  private static final class Found extends Exception {
    Found(String bodies) {
      super(bodies);
    }
  }

  private static void byKey(Stage stage) throws Exception {
    String topic = stage.topic(2);
    stage.send(keyed(topic, "k1", "m1"), 0);
    stage.send(keyed(topic, "k1 k2", "m2"), 1);
    stage.send(keyed(topic, "k3", "m3"), 0);
    stage.send(topic, "none");
    Stage.until("they are indexed", () -> found(stage, topic, "k3").equals("Found m3") && found(stage, topic, "k1").equals("Found m1,m2"));
    for (String key : List.of("k1", "k2", "k3", "k", "K1", "k1 k2")) {
      stage.say(key + ": " + found(stage, topic, key));
    }
    stage.say("of another topic: " + found(stage, stage.topic(1), "k1"));
  }

  private static void most(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (int number = 0; number < 5; number++) {
      stage.send(keyed(topic, "k", "m" + number), 0);
    }
    Stage.until("they are indexed", () -> found(stage, topic, "k").equals("Found m0,m1,m2,m3,m4"));
    stage.say("at most 2: " + Words.bodies(find(stage, topic, "k", 2, 0, Long.MAX_VALUE)));
    stage.say("at most 100: " + Words.sortedBodies(find(stage, topic, "k", 100, 0, Long.MAX_VALUE)));
  }

  private static void withinTimes(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.send(keyed(topic, "k", "m0"), 0);
    long stored = stage.read(topic).get(0).getStoreTimestamp();
    // The index knows seconds.
    Stage.until("another second", () -> System.currentTimeMillis() > stored + 2_100);
    stage.send(keyed(topic, "k", "m1"), 0);
    Stage.until("they are indexed", () -> found(stage, topic, "k").equals("Found m0,m1"));
    long second = stage.read(topic).get(1).getStoreTimestamp();
    stage.say("until the first: " + Words.bodies(find(stage, topic, "k", 32, 0, stored + 1000)));
    stage.say("from the second on: " + Words.bodies(find(stage, topic, "k", 32, second - 1000, Long.MAX_VALUE)));
    stage.sayRefusal("before both", () -> find(stage, topic, "k", 32, 0, stored - 60_000));
    stage.sayRefusal("after both", () -> find(stage, topic, "k", 32, second + 60_000, Long.MAX_VALUE));
  }

  /** Keys with one hash code in Java. */
  private static void collision(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.send(keyed(topic, "AaAa", "m1"), 0);
    stage.send(keyed(topic, "BBBB", "m2"), 0);
    Stage.until("they are indexed", () -> found(stage, topic, "BBBB").equals("Found m2"));
    stage.say("AaAa: " + found(stage, topic, "AaAa") + ", AaBB: " + found(stage, topic, "AaBB"));
  }

  private static void byUniqueKey(Stage stage) throws Exception {
    String topic = stage.topic(1);
    SendResult sent = stage.send(Stage.message(topic, "m"), 0);
    Stage.until("it is indexed", () -> stage.refusal(() -> stage.clients.admin.viewMessage(topic, sent.getMsgId())).equals("done"));
    stage.say(Stage.text(stage.clients.admin.viewMessage(topic, sent.getMsgId())));
    stage.say("as a key it is found: " + found(stage, topic, sent.getMsgId()));
    var result = stage.clients.admin.queryMessageByUniqKey("DefaultCluster", topic, sent.getMsgId(), 32, 0, Long.MAX_VALUE);
    stage.say("by the administrator: " + Words.bodies(result.getMessageList()));
    stage.sayRefusal("unknown", () -> stage.clients.admin.viewMessage(topic, "0A0A0A0A000000000000000000000000"));
  }

  private static void delayed(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message message = keyed(topic, "k", "later");
    message.setDelayTimeLevel(1);
    stage.send(message, 0);
    stage.awaitEnd(topic, 0, 1);
    Stage.until("it is indexed", () -> found(stage, topic, "k").equals("Found later"));
    stage.say("k: " + found(stage, topic, "k"));
  }

  private static void track(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String done = stage.group();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(done, "a");
    consumer.subscribe(topic, "A");
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    stage.send(Stage.tagged(topic, "A", "taken"), 0);
    stage.send(Stage.tagged(topic, "B", "not wanted"), 0);
    stage.send(Stage.tagged(topic, "A", "last"), 0);
    deliveries.await("last");
    Stage.until("the position", () -> {
      consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
      return consumer.getOffsetStore().readOffset(stage.queue(topic, 0), ReadOffsetType.READ_FROM_STORE) == 3;
    });
    for (MessageExt message : stage.read(topic)) {
      stage.say(Stage.text(message) + ": " + tracks(stage, message, done));
    }
    consumer.shutdown();
    Stage.until("it is gone", () -> !stage.refusal(() -> stage.clients.admin.examineConsumerConnectionInfo(done)).equals("done"));
    stage.say("once the group has gone: " + tracks(stage, stage.read(topic).get(0), done));
  }

  private static String tracks(Stage stage, MessageExt message, String group) throws Exception {
    return stage.clients.admin.messageTrackDetail(message).stream().filter(track -> track.getConsumerGroup().equals(group))
        .map(MessageTrack::getTrackType).map(String::valueOf).collect(Collectors.joining(","));
  }

  private static void directly(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(group, "a");
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    SendResult sent = stage.send(Stage.message(topic, "m"), 0);
    deliveries.await(1);
    var result = stage.clients.admin.consumeMessageDirectly(group, consumer.buildMQClientId(), topic, sent.getOffsetMsgId());
    stage.say(result.getConsumeResult() + ", in order: " + result.isOrder() + ", auto commit " + result.isAutoCommit());
    stage.say("delivered " + deliveries.bodies());
    stage.sayRefusal("by nobody", () -> stage.clients.admin.consumeMessageDirectly(group, "nobody", topic, sent.getOffsetMsgId()));
  }

  private static void topicStatus(Stage stage) throws Exception {
    String topic = stage.topic(2);
    stage.send(Stage.message(topic, "m0"), 0);
    stage.send(Stage.message(topic, "m1"), 0);
    var queues = stage.clients.admin.examineTopicStats(topic).getOffsetTable();
    long newest = stage.read(topic).get(1).getStoreTimestamp();
    for (int id = 0; id < 2; id++) {
      var queue = queues.get(stage.queue(topic, id));
      stage.say("queue " + id + ": " + queue.getMinOffset() + " to " + queue.getMaxOffset() + ", newest "
          + (queue.getLastUpdateTimestamp() == newest ? "the last's time" : queue.getLastUpdateTimestamp()));
    }
    stage.sayRefusal("of nothing", () -> stage.clients.admin.examineTopicStats(stage.topicName()));
  }

  private static void progress(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(group, "a");
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    stage.send(topic, "m0", "m1");
    deliveries.await(2);
    Stage.until("the position", () -> {
      consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
      return stage.clients.admin.examineConsumeStats(group).computeTotalDiff() == 0;
    });
    consumer.shutdown();
    stage.send(topic, "m2");
    var stats = stage.clients.admin.examineConsumeStats(group, topic);
    var queue = stats.getOffsetTable().get(stage.queue(topic, 0));
    stage.say("position " + queue.getConsumerOffset() + ", end " + queue.getBrokerOffset() + ", lag " + stats.computeTotalDiff());
    stage.say("last taken is the second: " + (queue.getLastTimestamp() == stage.read(topic).get(1).getStoreTimestamp()));
    List<String> topics = new ArrayList<>(new TreeSet<>(
        stage.clients.admin.examineConsumeStats(group).getOffsetTable().keySet().stream().map(one -> one.getTopic()).collect(Collectors.toList())));
    stage.say("topics " + topics);
  }

  private static void running(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    DefaultMQPushConsumer consumer = stage.push(group, "a");
    consumer.subscribe(topic, "A || B");
    consumer.registerMessageListener(new Deliveries().taking());
    consumer.start();
    Stage.until("its heartbeat", () -> stage.refusal(() -> stage.clients.admin.examineConsumerConnectionInfo(group)).equals("done"));
    var info = stage.clients.admin.getConsumerRunningInfo(group, consumer.buildMQClientId(), false);
    stage.say("subscribed " + info.getSubscriptionSet().stream().filter(one -> one.getTopic().equals(topic))
        .map(one -> one.getSubString() + " " + new TreeSet<>(one.getTagsSet())).collect(Collectors.joining()));
    stage.say("model " + info.getProperties().getProperty("messageModel") + ", orderly "
        + info.getProperties().getProperty("PROP_CONSUMEORDERLY"));
    stage.sayRefusal("of nobody", () -> stage.clients.admin.getConsumerRunningInfo(group, "nobody", false));
  }
}
