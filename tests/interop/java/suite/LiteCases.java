package suite;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Lite pull consumers, with queues of their own choice and with those of a group. */
final class LiteCases {
  private LiteCases() {}

  static void all(Suite suite) {
    suite.slow("lite.subscribed", LiteCases::subscribed);
    suite.slow("lite.assigned", LiteCases::assigned);
    suite.quick("lite.seeks", LiteCases::seeks);
    suite.slow("lite.paused", LiteCases::paused);
    suite.quick("lite.commits", LiteCases::commits);
    suite.slow("lite.by-tag", LiteCases::byTag);
    suite.slow("lite.shared", LiteCases::shared);
    suite.slow("lite.by-time", LiteCases::byTime);
    suite.slow("lite.refused", LiteCases::refused);
  }

  private static List<MessageExt> poll(DefaultLitePullConsumer consumer, int count) throws Exception {
    List<MessageExt> found = new ArrayList<>();
    Stage.until(count + " messages", () -> {
      found.addAll(consumer.poll(500));
      return found.size() >= count;
    });
    return found;
  }

  private static DefaultLitePullConsumer assigned(Stage stage, String group, String topic) throws Exception {
    DefaultLitePullConsumer consumer = stage.lite(group, "a");
    consumer.setAutoCommit(false);
    consumer.start();
    consumer.assign(List.of(stage.queue(topic, 0)));
    return consumer;
  }

  private static void subscribed(Stage stage) throws Exception {
    String topic = stage.topic(2);
    DefaultLitePullConsumer consumer = stage.lite(stage.group(), "a");
    consumer.subscribe(topic, "*");
    consumer.start();
    for (int number = 0; number < 6; number++) {
      stage.send(Stage.message(topic, "m" + number), number % 2);
    }
    stage.say(Words.sortedBodies(poll(consumer, 6)));
    stage.say("of queues " + consumer.assignment().stream().map(MessageQueue::getQueueId).collect(Collectors.toCollection(TreeSet::new)));
  }

  private static void assigned(Stage stage) throws Exception {
    String topic = stage.topic(2);
    stage.send(Stage.message(topic, "of 0"), 0);
    stage.send(Stage.message(topic, "of 1"), 1);
    DefaultLitePullConsumer consumer = stage.lite(stage.group(), "a");
    consumer.start();
    stage.say("queues " + consumer.fetchMessageQueues(topic).size());
    consumer.assign(List.of(stage.queue(topic, 1)));
    stage.say(Words.bodies(poll(consumer, 1)));
  }

  private static void seeks(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.send(topic, "m0", "m1", "m2", "m3");
    stage.awaitEnd(topic, 0, 4);
    MessageQueue queue = stage.queue(topic, 0);
    DefaultLitePullConsumer consumer = assigned(stage, stage.group(), topic);
    // A pull that is under way at a seek brings what it finds nevertheless; those from here on find nothing.
    poll(consumer, 4);
    consumer.seek(queue, 2);
    stage.say("from 2: " + Words.bodies(poll(consumer, 2)));
    consumer.seekToBegin(queue);
    stage.say("from the begin: " + Words.bodies(poll(consumer, 4)));
    consumer.seekToEnd(queue);
    stage.send(topic, "m4");
    stage.say("from the end: " + Words.bodies(poll(consumer, 1)));
    stage.sayRefusal("to 99", () -> {
      consumer.seek(queue, 99);
      return "done";
    });
  }

  private static void paused(Stage stage) throws Exception {
    String topic = stage.topic(2);
    DefaultLitePullConsumer consumer = stage.lite(stage.group(), "a");
    consumer.start();
    List<MessageQueue> both = List.of(stage.queue(topic, 0), stage.queue(topic, 1));
    consumer.assign(both);
    consumer.seek(both.get(0), 0);
    consumer.seek(both.get(1), 0);
    consumer.pause(List.of(both.get(0)));
    List<MessageExt> found = new ArrayList<>();
    stage.send(Stage.message(topic, "of 0"), 0);
    stage.send(Stage.message(topic, "of 1"), 1);
    // What was asked for before the pause may still come.
    Stage.until("the other's message", () -> {
      found.addAll(consumer.poll(200));
      return Words.bodies(found).contains("of 1");
    });
    consumer.resume(List.of(both.get(0)));
    Stage.until("its own", () -> {
      found.addAll(consumer.poll(200));
      return found.size() >= 2;
    });
    stage.say("at last " + Words.sortedBodies(found));
  }

  private static void commits(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    MessageQueue queue = stage.queue(topic, 0);
    stage.send(topic, "m0", "m1", "m2");
    DefaultLitePullConsumer consumer = assigned(stage, group, topic);
    consumer.seek(queue, 0);
    stage.say("committed " + consumer.committed(queue));
    poll(consumer, 3);
    stage.say("after a poll " + consumer.committed(queue));
    consumer.commit();
    Stage.until("the commit", () -> consumer.committed(queue) == 3);
    stage.say("after a commit " + consumer.committed(queue));
    consumer.commit(java.util.Map.of(queue, 1L), true);
    Stage.until("the commit", () -> consumer.committed(queue) == 1);
    stage.say("of its own choice " + consumer.committed(queue));
    consumer.shutdown();
    DefaultLitePullConsumer next = stage.lite(group, "b");
    next.setAutoCommit(false);
    next.subscribe(topic, "*");
    next.start();
    stage.say("the next one goes on with " + Words.bodies(poll(next, 2)));
  }

  private static void byTag(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (String tag : List.of("A", "B", "C", "A")) {
      stage.send(Stage.tagged(topic, tag, "of " + tag), 0);
    }
    DefaultLitePullConsumer consumer = stage.lite(stage.group(), "a");
    consumer.subscribe(topic, "A || C");
    consumer.start();
    stage.say(Words.bodies(poll(consumer, 3)));
  }

  private static void shared(Stage stage) throws Exception {
    String topic = stage.topic(4);
    String group = stage.group();
    List<DefaultLitePullConsumer> both = new ArrayList<>();
    for (String instance : List.of("a", "b")) {
      DefaultLitePullConsumer consumer = stage.lite(group, instance);
      consumer.subscribe(topic, "*");
      consumer.start();
      both.add(consumer);
    }
    Stage.until("two each", () -> both.get(0).assignment().size() == 2 && both.get(1).assignment().size() == 2);
    for (int number = 0; number < 8; number++) {
      stage.send(Stage.message(topic, "m" + number), number % 4);
    }
    List<MessageExt> found = new ArrayList<>();
    TreeSet<String> distinct = new TreeSet<>();
    Stage.until("all", () -> {
      for (DefaultLitePullConsumer consumer : both) {
        found.addAll(consumer.poll(200));
      }
      found.forEach(message -> distinct.add(Stage.text(message)));
      return distinct.size() == 8;
    });
    both.get(0).shutdown();
    Stage.until("all four", () -> both.get(1).assignment().size() == 4);
    stage.say("two each, " + distinct + ", then four");
  }

  private static void byTime(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.send(topic, "m0");
    long stored = stage.read(topic).get(0).getStoreTimestamp();
    Stage.until("the next millisecond", () -> System.currentTimeMillis() > stored + 1);
    stage.send(topic, "m1");
    MessageQueue queue = stage.queue(topic, 0);
    DefaultLitePullConsumer consumer = assigned(stage, stage.group(), topic);
    long offset = consumer.offsetForTimestamp(queue, stored + 1);
    stage.say("after the first: " + offset);
    consumer.seek(queue, offset);
    stage.say(Words.bodies(poll(consumer, 1)));
  }

  private static void refused(Stage stage) throws Exception {
    String topic = stage.topic(1);
    DefaultLitePullConsumer consumer = stage.lite(stage.group(), "a");
    stage.sayRefusal("poll before the start", () -> consumer.poll(10));
    consumer.subscribe(topic, "*");
    stage.sayRefusal("assign after subscribe", () -> {
      consumer.assign(List.of(stage.queue(topic, 0)));
      return "done";
    });
    consumer.start();
    stage.sayRefusal("seek of what it has not", () -> {
      consumer.seek(stage.queue(stage.topic(1), 0), 0);
      return "done";
    });
    stage.sayRefusal("queues of nothing", () -> consumer.fetchMessageQueues(stage.topicName()));
  }
}
