package suite;

import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** SQL92 over properties: what is absent, what is of another type, and what is refused. */
final class FilterCases {
  private FilterCases() {}

  static void all(Suite suite) {
    suite.quick("filter.absent", stage -> table(stage, "a IS NULL", "a IS NOT NULL", "a = 5", "NOT (a = 5)", "a <> 5",
        "a = 5 OR b = 'x'", "a = 5 AND b = 'x'", "NOT (a = 5 AND b = 'x')", "a IS NULL AND b IS NOT NULL", "nowhere IS NULL",
        "nowhere = 1", "NOT (nowhere = 1)", "nowhere = 1 OR TRUE", "nowhere > 1 AND FALSE"));
    suite.quick("filter.types", stage -> table(stage, "a > 3", "a >= 5", "a < 5.5", "a = '5'", "a = 'five'", "a BETWEEN 4 AND 6",
        "a NOT BETWEEN 4 AND 6", "a = 5.0", "a > -1", "b > 1", "b = 5", "c = TRUE", "c = 'true'", "c <> FALSE", "d = 10",
        "d = 1e1", "a = b", "a > 99999999999"));
    suite.slow("filter.texts", stage -> table(stage, "b = 'x'", "b <> 'x'", "b IN ('x', 'y')", "b NOT IN ('x')", "b IN ('nobody')",
        "b CONTAINS 'x'", "b NOT CONTAINS 'x'", "b STARTSWITH 'x'", "b ENDSWITH 'y'", "b NOT STARTSWITH 'x'", "e = 'it''s'",
        "b = 'X'", "TAGS = 'T'", "TAGS IS NOT NULL AND a IS NOT NULL", "KEYS = 'key'", "b = ''"));
    suite.slow("filter.logic", stage -> table(stage, "TRUE", "FALSE", "NOT FALSE", "a > 3 AND a < 6 OR b = 'y'",
        "a > 3 AND (a < 6 OR b = 'y')", "(a = 5)", "a=5", "a>3and b='x'", "a > 3 -- comment",
        "a > 3 /* comment */ AND b = 'x'", "1 = 1", "1 > 2", "5 = a"));
    suite.quick("filter.refused", FilterCases::refused);
    suite.slow("filter.push", FilterCases::push);
    suite.slow("filter.lite-pull", FilterCases::lite);
    suite.slow("filter.long-run-of-others", FilterCases::longRun);
    suite.slow("filter.batch", FilterCases::batch);
    suite.slow("filter.delayed", FilterCases::delayed);
  }

  /** Messages with every mixture; the body says what each one has. */
  private static String messages(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String[][] all = {{}, {"a", "5"}, {"a", "7", "b", "x"}, {"b", "x"}, {"b", "xy"}, {"a", "five", "b", "y"}, {"a", "5", "b", "5"},
        {"a", "-2.5"}, {"c", "true"}, {"c", "TRUE", "a", "3"}, {"d", "10.0"}, {"d", "1e1"}, {"e", "it's"}, {"a", " 5"}, {"a", "05"}};
    List<Message> batch = new ArrayList<>();
    for (String[] properties : all) {
      Message message = Stage.message(topic, "{" + String.join(" ", properties) + "}");
      for (int at = 0; at < properties.length; at += 2) {
        message.putUserProperty(properties[at], properties[at + 1]);
      }
      batch.add(message);
    }
    Message tagged = Stage.tagged(topic, "T", "{tagged a 1}");
    tagged.setKeys("key");
    tagged.putUserProperty("a", "1");
    batch.add(tagged);
    for (Message message : batch) {
      stage.send(message, 0);
    }
    return topic;
  }

  private static String matches(DefaultMQPullConsumer puller, MessageQueue queue, String expression) throws Exception {
    List<MessageExt> found = new ArrayList<>();
    long offset = 0;
    PullResult result;
    do {
      result = puller.pull(queue, MessageSelector.bySql(expression), offset, 32);
      if (result.getMsgFoundList() != null) {
        found.addAll(result.getMsgFoundList());
      }
      offset = result.getNextBeginOffset();
    } while (offset < result.getMaxOffset());
    return Words.bodies(found);
  }

  private static void table(Stage stage, String... expressions) throws Exception {
    String topic = messages(stage);
    stage.awaitEnd(topic, 0, 16);
    DefaultMQPullConsumer puller = stage.puller(stage.group());
    for (String expression : expressions) {
      stage.say(expression + ": " + matches(puller, stage.queue(topic, 0), expression));
    }
  }

  private static void refused(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (String expression : List.of("a >", "a = ", "a LIKE 'x'", "a > 'x", "(a = 1", "a BETWEEN 5 AND 3", "a IN (1, 2)", "a IN ()", "a == 1",
        "a & 1", "1", "'x'", "a", "a + 1 = 2", "a BETWEEN 'x' AND 'y'", "b > 'x'", "TRUE > 1", "NOT a > 3", "a > 'a'", "NOT (a > 3)")) {
      String group = stage.group();
      DefaultMQPushConsumer consumer = stage.push(group, "a");
      consumer.subscribe(topic, MessageSelector.bySql(expression));
      consumer.registerMessageListener(new Deliveries().taking());
      String refusal = stage.refusal(() -> {
        consumer.start();
        return "done";
      });
      // Behind the code come the parser's own words, and where the client was.
      stage.say(expression + ": " + refusal.replaceAll("(client says -?\\d+|broker says \\d+).*", "$1"));
    }
  }

  private static void push(Stage stage) throws Exception {
    String topic = messages(stage);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(stage.group(), "a");
    consumer.subscribe(topic, MessageSelector.bySql("a >= 5 OR b = 'last'"));
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    Message last = Stage.message(topic, "{b last}");
    last.putUserProperty("b", "last");
    stage.send(last, 0);
    deliveries.await("{b last}");
    stage.say(deliveries.sorted());
  }

  private static void lite(Stage stage) throws Exception {
    String topic = messages(stage);
    DefaultLitePullConsumer consumer = stage.lite(stage.group(), "a");
    consumer.subscribe(topic, MessageSelector.bySql("a IS NOT NULL AND b IS NOT NULL"));
    consumer.start();
    List<MessageExt> found = new ArrayList<>();
    Stage.until("three messages", () -> {
      found.addAll(consumer.poll(1000));
      return found.size() >= 3;
    });
    stage.say(Words.bodies(found));
  }

  private static void longRun(Stage stage) throws Exception {
    String topic = stage.topic(1);
    List<Message> others = new ArrayList<>();
    for (int number = 0; number < 3000; number++) {
      Message message = Stage.message(topic, "other");
      message.putUserProperty("a", "1");
      others.add(message);
    }
    stage.sendBatch(others);
    Message wanted = Stage.message(topic, "wanted");
    wanted.putUserProperty("a", "2");
    stage.send(wanted, 0);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(stage.group(), "a");
    consumer.subscribe(topic, MessageSelector.bySql("a = 2"));
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    deliveries.await(1);
    stage.say(deliveries.bodies() + " at " + deliveries.all().get(0).getQueueOffset());
  }

  private static void batch(Stage stage) throws Exception {
    String topic = stage.topic(1);
    List<Message> batch = new ArrayList<>();
    for (int number = 0; number < 6; number++) {
      Message message = Stage.message(topic, "m" + number);
      message.putUserProperty("a", String.valueOf(number));
      batch.add(message);
    }
    stage.sendBatch(batch);
    stage.awaitEnd(topic, 0, 6);
    stage.say(matches(stage.puller(stage.group()), stage.queue(topic, 0), "a > 1 AND a < 4"));
  }

  private static void delayed(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (int number = 0; number < 3; number++) {
      Message message = Stage.message(topic, "m" + number);
      message.putUserProperty("a", String.valueOf(number));
      message.setDelayTimeLevel(1);
      stage.send(message, 0);
    }
    stage.awaitEnd(topic, 0, 3);
    stage.say(matches(stage.puller(stage.group()), stage.queue(topic, 0), "a = 1"));
  }
}
