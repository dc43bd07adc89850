package suite;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages that wait: levels, times, and those that are taken back. */
final class DelayCases {
  private DelayCases() {}

  static void all(Suite suite) {
    suite.quick("delay.every-level", stage -> levels(stage, 1, 18));
    suite.slow("delay.level-beyond-the-last", DelayCases::beyondLast);
    suite.quick("delay.level-that-is-none", DelayCases::noLevel);
    suite.quick("delay.what-it-looks-like", DelayCases::looks);
    suite.slow("delay.consumed-by-tag", DelayCases::byTag);
    suite.quick("delay.time", DelayCases::times);
    suite.slow("delay.time-that-has-passed", DelayCases::past);
    suite.quick("delay.time-too-far", DelayCases::tooFar);
    suite.slow("delay.time-that-is-none", DelayCases::noTime);
    suite.slow("delay.level-and-time", DelayCases::both);
    suite.quick("delay.recall", DelayCases::recall);
    suite.slow("delay.recall-of-nothing", DelayCases::recallOfNothing);
    suite.slow("delay.recall-too-late", DelayCases::recallTooLate);
    suite.slow("delay.place-in-the-queue", DelayCases::place);
    suite.stock("delay.stock.levels-1-to-4", stage -> levels(stage, 1, 4));
  }

  /** How long the broker kept it, by its own clock. */
  private static long waited(MessageExt message) {
    return message.getStoreTimestamp() - message.getBornTimestamp();
  }

  private static void levels(Stage stage, int first, int last) throws Exception {
    String topic = stage.topic(1);
    for (int level = first; level <= last; level++) {
      Message message = Stage.message(topic, String.valueOf(level));
      message.setDelayTimeLevel(level);
      stage.send(message, 0);
    }
    stage.awaitEnd(topic, 0, last - first + 1);
    List<MessageExt> seen = stage.read(topic);
    for (int level = first; level <= last; level++) {
      String body = String.valueOf(level);
      MessageExt message = seen.stream().filter(one -> Stage.text(one).equals(body)).findFirst().get();
      long seconds = Delays.secondsOf(level);
      stage.say("level " + level + " after " + seconds + " s at least: " + (waited(message) >= seconds * 1000));
    }
    stage.say("seen " + seen.size());
  }

  private static void beyondLast(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (int level : new int[] {19, 1000}) {
      Message message = Stage.message(topic, "of " + level);
      message.setDelayTimeLevel(level);
      stage.say(level + ": " + stage.refusal(() -> stage.send(message, 0)));
    }
    stage.awaitEnd(topic, 0, 2);
    for (MessageExt message : stage.read(topic)) {
      stage.say("after that of the last level: " + (waited(message) >= Delays.secondsOf(18) * 1000));
    }
  }

  private static void noLevel(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (String level : List.of("0", "-1", "word", "1.5")) {
      Message message = Stage.message(topic, level);
      MessageAccessor.putProperty(message, "DELAY", level);
      stage.say("level " + level + ": " + stage.refusal(() -> stage.send(message, 0)));
    }
    stage.send(topic, "after");
    stage.say("read " + Words.sortedBodies(stage.read(topic)));
  }

  private static void looks(Stage stage) throws Exception {
    String topic = stage.topic(3);
    Message message = Stage.tagged(topic, "tag", "m");
    message.setKeys("key");
    message.setFlag(3);
    message.putUserProperty("user", "value");
    message.setDelayTimeLevel(1);
    SendResult sent = stage.send(message, 2);
    stage.say(sent.getSendStatus());
    stage.awaitEnd(topic, 2, 1);
    MessageExt seen = stage.read(topic, 2, "*").get(0);
    stage.say("of " + seen.getTopic() + " queue " + seen.getQueueId() + " at " + seen.getQueueOffset() + ", flag " + seen.getFlag());
    stage.say(Words.properties(seen));
    stage.say("id of the answer: " + sent.getMsgId().equals(seen.getMsgId()) + ", reconsumed " + seen.getReconsumeTimes());
  }

  private static void byTag(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(stage.group(), "a");
    consumer.subscribe(topic, "wanted");
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    for (String tag : List.of("other", "wanted")) {
      Message message = Stage.tagged(topic, tag, tag + " at once");
      stage.send(message, 0);
      Message later = Stage.tagged(topic, tag, tag + " later");
      later.setDelayTimeLevel(1);
      stage.send(later, 0);
    }
    deliveries.await(2);
    stage.say(deliveries.bodies());
  }

  private static void times(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message seconds = Stage.message(topic, "2 seconds");
    seconds.setDelayTimeSec(2);
    Message milliseconds = Stage.message(topic, "2500 milliseconds");
    milliseconds.setDelayTimeMs(2500);
    long at = System.currentTimeMillis() + 3000;
    Message instant = Stage.message(topic, "an instant");
    instant.setDeliverTimeMs(at);
    for (Message message : List.of(seconds, milliseconds, instant)) {
      stage.say(Stage.text(message) + ": " + stage.send(message, 0).getSendStatus());
    }
    stage.awaitEnd(topic, 0, 3);
    for (MessageExt message : stage.read(topic)) {
      // The original's timer ticks by the second, and fires up to a tick early.
      long waited = waited(message);
      boolean inTime = Stage.text(message).equals("2 seconds") ? waited >= 1000
          : Stage.text(message).equals("an instant") ? message.getStoreTimestamp() >= at - 1000 : waited >= 1500;
      stage.say(Stage.text(message) + " in time: " + inTime + " " + Words.names(message, "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES",
          "TIMER_ENQUEUE_MS"));
    }
  }

  private static void past(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message past = Stage.message(topic, "past");
    past.setDeliverTimeMs(System.currentTimeMillis() - 60_000);
    Message now = Stage.message(topic, "now");
    now.setDeliverTimeMs(System.currentTimeMillis());
    Message none = Stage.message(topic, "no time");
    none.setDelayTimeMs(0);
    for (Message message : List.of(past, now, none)) {
      stage.say(Stage.text(message) + ": " + stage.refusal(() -> stage.send(message, 0)));
    }
    stage.awaitEnd(topic, 0, 3);
    stage.say("read " + Words.sortedBodies(stage.read(topic)));
  }

  private static void tooFar(Stage stage) throws Exception {
    String topic = stage.topic(1);
    long days = 24 * 3600;
    Message seconds = Stage.message(topic, "s");
    seconds.setDelayTimeSec(3 * days + 10);
    stage.sayRefusal("more than 3 days in seconds", () -> stage.send(seconds, 0));
    Message milliseconds = Stage.message(topic, "ms");
    milliseconds.setDelayTimeMs((3 * days + 10) * 1000);
    stage.sayRefusal("in milliseconds", () -> stage.send(milliseconds, 0));
    Message instant = Stage.message(topic, "at");
    instant.setDeliverTimeMs(System.currentTimeMillis() + (3 * days + 100) * 1000);
    stage.sayRefusal("at an instant", () -> stage.send(instant, 0));
    Message near = Stage.message(topic, "near");
    near.setDelayTimeSec(3 * days - 10);
    stage.sayRefusal("10 s less", () -> stage.send(near, 0));
    stage.say("end " + stage.clients.admin.maxOffset(stage.queue(topic, 0)));
  }

  private static void noTime(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (String name : List.of("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")) {
      for (String value : List.of("word", "-5", "99999999999999999999")) {
        Message message = Stage.message(topic, name + "=" + value);
        MessageAccessor.putProperty(message, name, value);
        stage.sayRefusal(name + "=" + value, () -> stage.send(message, 0));
      }
    }
    stage.send(topic, "after");
    stage.say("read " + Words.sortedBodies(stage.read(topic)));
  }

  private static void both(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message message = Stage.message(topic, "both");
    message.setDelayTimeLevel(4);
    message.setDelayTimeMs(1000);
    stage.say(stage.refusal(() -> stage.send(message, 0)));
    stage.awaitEnd(topic, 0, 1);
    MessageExt seen = stage.read(topic).get(0);
    stage.say("waited for its level: " + (waited(seen) >= 4000));
    stage.say(Words.names(seen, "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES", "TIMER_ENQUEUE_MS"));
  }

  private static void recall(Stage stage) throws Exception {
    String topic = stage.topic(1);
    DefaultMQProducer producer = stage.clients.producer;
    Message message = Stage.message(topic, "recalled");
    message.setDelayTimeSec(3);
    SendResult sent = producer.send(message);
    stage.say("a handle: " + (sent.getRecallHandle() != null));
    stage.say("recalls its id: " + sent.getMsgId().equals(producer.recallMessage(topic, sent.getRecallHandle())));
    Message last = Stage.message(topic, "last");
    last.setDelayTimeSec(5);
    SendResult kept = producer.send(last);
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)) + ", the last one: "
        + kept.getMsgId().equals(stage.read(topic).get(0).getMsgId()));
    Message plain = Stage.message(topic, "plain");
    stage.say("a handle of a plain one: " + producer.send(plain).getRecallHandle());
    Message level = Stage.message(topic, "level");
    level.setDelayTimeLevel(1);
    stage.say("of one with a level: " + producer.send(level).getRecallHandle());
  }

  private static void recallOfNothing(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String other = stage.topic(1);
    DefaultMQProducer producer = stage.clients.producer;
    Message message = Stage.message(topic, "kept");
    message.setDelayTimeSec(2);
    String handle = producer.send(message).getRecallHandle();
    stage.sayRefusal("by another topic", () -> producer.recallMessage(other, handle));
    stage.sayRefusal("nonsense", () -> producer.recallMessage(topic, "nonsense"));
    stage.sayRefusal("nothing", () -> producer.recallMessage(topic, ""));
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)));
  }

  private static void recallTooLate(Stage stage) throws Exception {
    String topic = stage.topic(1);
    DefaultMQProducer producer = stage.clients.producer;
    Message message = Stage.message(topic, "arrived");
    message.setDelayTimeSec(1);
    String handle = producer.send(message).getRecallHandle();
    stage.awaitEnd(topic, 0, 1);
    stage.sayRefusal("after it arrived", () -> {
      producer.recallMessage(topic, handle);
      return "done";
    });
    stage.say("read " + Words.bodies(stage.read(topic)));
  }

  private static void place(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message later = Stage.message(topic, "sent first");
    later.setDelayTimeLevel(1);
    stage.send(later, 0);
    SendResult second = stage.send(Stage.message(topic, "sent second"), 0);
    stage.awaitEnd(topic, 0, 2);
    SendResult third = stage.send(Stage.message(topic, "sent third"), 0);
    stage.say("at " + second.getQueueOffset() + " and " + third.getQueueOffset());
    stage.say(Words.bodies(stage.read(topic)));
  }
}
