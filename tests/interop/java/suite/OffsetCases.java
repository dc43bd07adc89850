package suite;

import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Positions that an administrator moves. */
final class OffsetCases {
  private OffsetCases() {}

  static void all(Suite suite) {
    suite.quick("reset.offline-to-the-begin", stage -> offline(stage, 0));
    suite.slow("reset.offline-to-the-end", stage -> offline(stage, -1));
    suite.slow("reset.offline-to-a-time", OffsetCases::toTime);
    suite.slow("reset.not-forced", OffsetCases::notForced);
    suite.slow("reset.online", OffsetCases::online);
    suite.slow("reset.one-queue", OffsetCases::oneQueue);
    suite.quick("reset.clone", OffsetCases::cloned);
    suite.slow("reset.group-deleted", OffsetCases::deleted);
    suite.slow("reset.of-nobody", OffsetCases::nobody);
  }

  private static DefaultMQPushConsumer member(Stage stage, String group, String topic, Deliveries deliveries) throws Exception {
    DefaultMQPushConsumer consumer = stage.push(group, "a");
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    return consumer;
  }

  /** A group that has consumed what is there, and has gone. */
  private static void consumed(Stage stage, String group, String topic, String... bodies) throws Exception {
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = member(stage, group, topic, deliveries);
    stage.send(topic, bodies);
    deliveries.await(bodies.length);
    Stage.until("the position", () -> {
      consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
      return consumer.getOffsetStore().readOffset(stage.queue(topic, 0), ReadOffsetType.READ_FROM_STORE) == bodies.length;
    });
    consumer.shutdown();
    Stage.until("it is gone", () -> !stage.refusal(() -> stage.clients.admin.examineConsumerConnectionInfo(group)).equals("done"));
  }

  private static String shown(Map<MessageQueue, Long> positions) {
    Map<Integer, Long> shown = new TreeMap<>();
    positions.forEach((queue, offset) -> shown.put(queue.getQueueId(), offset));
    return shown.toString();
  }

  private static long position(Stage stage, String group, String topic) throws Exception {
    return stage.clients.admin.examineConsumeStats(group, topic).getOffsetTable().get(stage.queue(topic, 0)).getConsumerOffset();
  }

  private static void offline(Stage stage, long time) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    consumed(stage, group, topic, "m0", "m1", "m2");
    stage.send(topic, "m3");
    stage.say("position " + position(stage, group, topic));
    stage.sayRefusal("by asking its members", () -> stage.clients.admin.resetOffsetByTimestamp(topic, group, time, true));
    var moved = stage.clients.admin.resetOffsetByTimestampOld(group, topic, time, true);
    stage.say("at the broker: from " + moved.get(0).getConsumerOffset() + " to " + moved.get(0).getRollbackOffset());
    stage.say("position " + position(stage, group, topic));
    Deliveries again = new Deliveries();
    member(stage, group, topic, again);
    stage.send(topic, "last");
    again.await("last");
    stage.say("then " + again.sorted());
  }

  private static void toTime(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    consumed(stage, group, topic, "m0");
    long stored = stage.read(topic).get(0).getStoreTimestamp();
    Stage.until("the next millisecond", () -> System.currentTimeMillis() > stored + 1);
    stage.send(topic, "m1", "m2");
    long second = stage.read(topic).get(1).getStoreTimestamp();
    stage.clients.admin.resetOffsetByTimestampOld(group, topic, 0, true);
    stage.say("to the begin " + position(stage, group, topic));
    stage.clients.admin.resetOffsetByTimestampOld(group, topic, second, true);
    stage.say("to the second's time " + position(stage, group, topic));
    stage.clients.admin.resetOffsetByTimestampOld(group, topic, System.currentTimeMillis() + 3_600_000, true);
    stage.say("to a time to come " + position(stage, group, topic));
  }

  private static void notForced(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    consumed(stage, group, topic, "m0", "m1", "m2");
    stage.clients.admin.resetOffsetByTimestampOld(group, topic, 0, true);
    stage.clients.admin.resetOffsetByTimestampOld(group, topic, -1, false);
    stage.say("forward without force: " + position(stage, group, topic));
    stage.clients.admin.resetOffsetByTimestampOld(group, topic, -1, true);
    stage.say("with force: " + position(stage, group, topic));
    stage.clients.admin.resetOffsetByTimestampOld(group, topic, 0, false);
    stage.say("back without force: " + position(stage, group, topic));
  }

  private static void online(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Deliveries deliveries = new Deliveries();
    member(stage, group, topic, deliveries);
    stage.send(topic, "m0", "m1", "m2");
    deliveries.await(3);
    stage.say("moved to " + shown(stage.clients.admin.resetOffsetByTimestamp(topic, group, 0, true)));
    // A member drops its queue, waits ten seconds and begins anew with the next look at its queues.
    Stage.until("they come again", () -> deliveries.of("m0").size() > 1 && deliveries.of("m1").size() > 1 && deliveries.of("m2").size() > 1);
    stage.say("all came again");
  }

  private static void oneQueue(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    consumed(stage, group, topic, "m0", "m1", "m2");
    stage.clients.admin.resetOffsetByQueueId(stage.clients.broker, group, topic, 0, 1);
    stage.say("to 1: " + position(stage, group, topic));
    Deliveries again = new Deliveries();
    member(stage, group, topic, again);
    again.await("m2").await("m1");
    stage.say("then " + again.sorted());
    stage.sayRefusal("to 99", () -> {
      stage.clients.admin.resetOffsetByQueueId(stage.clients.broker, stage.group(), topic, 0, 99);
      return "done";
    });
  }

  private static void cloned(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    String copy = stage.group();
    consumed(stage, group, topic, "m0", "m1");
    stage.clients.admin.cloneGroupOffset(group, copy, topic, true);
    stage.say("position of the copy " + position(stage, copy, topic));
    Deliveries deliveries = new Deliveries();
    member(stage, copy, topic, deliveries);
    stage.send(topic, "m2");
    deliveries.await("m2");
    stage.say("it goes on with " + deliveries.sorted());
    stage.sayRefusal("of nobody", () -> {
      stage.clients.admin.cloneGroupOffset(stage.group(), stage.group(), topic, true);
      return "done";
    });
  }

  private static void deleted(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    consumed(stage, group, topic, "m0", "m1");
    stage.clients.admin.deleteSubscriptionGroup(stage.clients.broker, group, true);
    var left = stage.clients.admin.examineConsumeStats(group, topic).getOffsetTable().get(stage.queue(topic, 0));
    stage.say("its position " + (left == null ? "none" : left.getConsumerOffset()));
    Deliveries deliveries = new Deliveries();
    member(stage, group, topic, deliveries);
    stage.send(topic, "m2");
    deliveries.await("m2");
    stage.say("one of that name begins with " + deliveries.sorted());
  }

  private static void nobody(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.send(topic, "m0");
    String group = stage.group();
    stage.sayRefusal("by asking its members", () -> stage.clients.admin.resetOffsetByTimestamp(topic, group, 0, true));
    stage.sayRefusal("of a topic that is not there",
        () -> stage.clients.admin.resetOffsetByTimestamp(stage.topicName(), group, 0, true));
    MessageExt first = stage.read(topic).get(0);
    stage.say("the message is there: " + Stage.text(first));
  }
}
