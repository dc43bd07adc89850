package suite;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Pulls, positions and searches by time, as they are answered. */
final class PullCases {
  private static final int KIB = 1024;

  private PullCases() {}

  static void all(Suite suite) {
    suite.quick("pull.statuses", PullCases::statuses);
    suite.quick("pull.counts", PullCases::counts);
    suite.slow("pull.large-bodies", PullCases::largeBodies);
    suite.quick("pull.tags", PullCases::tags);
    suite.slow("pull.held-until-a-send", PullCases::held);
    suite.quick("pull.held-for-a-tag", PullCases::heldForTag);
    suite.slow("pull.held-in-vain", PullCases::heldInVain);
    suite.quick("pull.unknown", PullCases::unknown);
    suite.quick("offsets.of-queues", PullCases::offsets);
    suite.quick("offsets.of-groups", PullCases::groupOffsets);
    suite.quick("offsets.by-time", PullCases::byTime);
    suite.slow("offsets.by-time.boundaries", PullCases::boundaries);
    suite.quick("query.by-place", PullCases::byPlace);
  }

  private static String shown(PullResult result) {
    String found = result.getMsgFoundList() == null ? "" : " " + Words.bodies(result.getMsgFoundList());
    return result.getPullStatus() + found + ", next " + result.getNextBeginOffset() + " of " + result.getMinOffset() + " to "
        + result.getMaxOffset();
  }

  private static void statuses(Stage stage) throws Exception {
    String topic = stage.topic(1);
    MessageQueue queue = stage.queue(topic, 0);
    DefaultMQPullConsumer puller = stage.puller(stage.group());
    for (long offset : new long[] {0, 1, 100}) {
      stage.say("empty, from " + offset + ": " + shown(puller.pull(queue, "*", offset, 32)));
    }
    stage.send(topic, "m0", "m1", "m2");
    stage.awaitEnd(topic, 0, 3);
    for (long offset : new long[] {0, 2, 3, 4, 1_000_000}) {
      stage.say("from " + offset + ": " + shown(puller.pull(queue, "*", offset, 32)));
    }
    stage.sayRefusal("from -1", () -> puller.pull(queue, "*", -1, 32));
    stage.sayRefusal("0 messages", () -> puller.pull(queue, "*", 0, 0));
    stage.say("other tag: " + shown(puller.pull(queue, "other", 0, 32)));
  }

  private static void counts(Stage stage) throws Exception {
    String topic = stage.topic(1);
    List<Message> messages = new ArrayList<>();
    for (int number = 0; number < 100; number++) {
      messages.add(Stage.message(topic, "m" + number));
    }
    stage.sendBatch(messages);
    stage.awaitEnd(topic, 0, 100);
    DefaultMQPullConsumer puller = stage.puller(stage.group());
    for (int most : new int[] {1, 31, 32, 33, 64, 1000}) {
      PullResult result = puller.pull(stage.queue(topic, 0), "*", 0, most);
      stage.say("of " + most + " asked for " + result.getMsgFoundList().size() + ", next " + result.getNextBeginOffset());
    }
    PullResult end = puller.pull(stage.queue(topic, 0), "*", 90, 32);
    stage.say("at the end " + end.getMsgFoundList().size() + ", next " + end.getNextBeginOffset());
  }

  private static void largeBodies(Stage stage) throws Exception {
    DefaultMQPullConsumer puller = stage.puller(stage.group());
    for (int size : new int[] {10 * KIB, 100 * KIB, 300 * KIB, 1000 * KIB}) {
      String topic = stage.topic(1);
      for (int number = 0; number < 5; number++) {
        stage.send(new Message(topic, new byte[size]), 0);
      }
      stage.awaitEnd(topic, 0, 5);
      PullResult result = puller.pull(stage.queue(topic, 0), "*", 0, 32);
      stage.say(size / KIB + " KiB each: " + result.getMsgFoundList().size() + " at once");
    }
  }

  private static void tags(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (String tag : new String[] {"A", "B", null, "C", "A", "AaAa", "BBBB", "AaBB"}) {
      Message message = Stage.message(topic, tag == null ? "none" : tag);
      message.setTags(tag);
      stage.send(message, 0);
    }
    stage.awaitEnd(topic, 0, 8);
    DefaultMQPullConsumer puller = stage.puller(stage.group());
    // The last three have one hash code.
    for (String tags : new String[] {"A", "B || C", "A||B||C", "*", null, "", "D", "AaAa", "BBBB", "a", " A || C "}) {
      stage.say("'" + tags + "': " + shown(puller.pull(stage.queue(topic, 0), tags, 0, 32)));
    }
    stage.sayRefusal("'||'", () -> shown(puller.pull(stage.queue(topic, 0), "||", 0, 32)));
  }

  private static CompletableFuture<PullResult> blocking(DefaultMQPullConsumer puller, MessageQueue queue, String tags, long offset) {
    CompletableFuture<PullResult> answer = new CompletableFuture<>();
    Thread thread = new Thread(() -> {
      try {
        answer.complete(puller.pullBlockIfNotFound(queue, tags, offset, 32));
      } catch (Exception thrown) {
        answer.completeExceptionally(thrown);
      }
    });
    thread.setDaemon(true);
    thread.start();
    return answer;
  }

  private static DefaultMQPullConsumer patient(Stage stage) throws Exception {
    DefaultMQPullConsumer puller = new DefaultMQPullConsumer(stage.group());
    stage.clients.settle(puller, Clients.PULLING);
    puller.setBrokerSuspendMaxTimeMillis(60_000);
    puller.setConsumerTimeoutMillisWhenSuspend(Stage.LIMIT_MS);
    puller.start();
    stage.closing(puller::shutdown);
    return puller;
  }

  private static void held(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.send(topic, "before");
    stage.awaitEnd(topic, 0, 1);
    CompletableFuture<PullResult> answer = blocking(patient(stage), stage.queue(topic, 0), "*", 1);
    // Whether or not the pull is there first, the message is its answer.
    stage.send(topic, "wakes it");
    PullResult woken = answer.get(Stage.LIMIT_MS, TimeUnit.MILLISECONDS);
    stage.say(woken.getPullStatus() + " " + Words.bodies(woken.getMsgFoundList()) + ", next " + woken.getNextBeginOffset());
  }

  private static void heldForTag(Stage stage) throws Exception {
    String topic = stage.topic(1);
    CompletableFuture<PullResult> answer = blocking(patient(stage), stage.queue(topic, 0), "wanted", 0);
    stage.send(Stage.tagged(topic, "other", "not for it"), 0);
    stage.send(Stage.tagged(topic, "wanted", "for it"), 0);
    PullResult result = answer.get(Stage.LIMIT_MS, TimeUnit.MILLISECONDS);
    // A pull that comes between the two sends finds nothing that it may have.
    while (result.getMsgFoundList() == null) {
      CompletableFuture<PullResult> next = blocking(patient(stage), stage.queue(topic, 0), "wanted", result.getNextBeginOffset());
      result = next.get(Stage.LIMIT_MS, TimeUnit.MILLISECONDS);
    }
    stage.say(result.getPullStatus() + " " + Words.bodies(result.getMsgFoundList()) + ", next " + result.getNextBeginOffset());
  }

  private static void heldInVain(Stage stage) throws Exception {
    String topic = stage.topic(1);
    DefaultMQPullConsumer puller = new DefaultMQPullConsumer(stage.group());
    stage.clients.settle(puller, Clients.PULLING);
    puller.setBrokerSuspendMaxTimeMillis(3_000);
    puller.setConsumerTimeoutMillisWhenSuspend(Stage.LIMIT_MS);
    puller.start();
    stage.closing(puller::shutdown);
    long began = System.nanoTime();
    PullResult result = puller.pullBlockIfNotFound(stage.queue(topic, 0), "*", 0, 32);
    boolean waited = System.nanoTime() - began >= 2_900_000_000L;
    stage.say(shown(result) + ", after 3 s at least: " + waited);
  }

  private static void unknown(Stage stage) throws Exception {
    String topic = stage.topic(1);
    DefaultMQPullConsumer puller = stage.puller(stage.group());
    stage.sayRefusal("queue 7", () -> shown(puller.pull(stage.queue(topic, 7), "*", 0, 32)));
    String nowhere = stage.topicName();
    stage.sayRefusal("topic", () -> shown(puller.pull(stage.queue(nowhere, 0), "*", 0, 32)));
    stage.sayRefusal("queues of a topic", () -> puller.fetchSubscribeMessageQueues(nowhere));
    stage.sayRefusal("queues to write", () -> stage.clients.producer.fetchPublishMessageQueues(nowhere));
  }

  private static void offsets(Stage stage) throws Exception {
    String topic = stage.topic(1);
    MessageQueue queue = stage.queue(topic, 0);
    var admin = stage.clients.admin;
    stage.say("empty " + admin.minOffset(queue) + " to " + admin.maxOffset(queue));
    stage.send(topic, "m0", "m1");
    stage.awaitEnd(topic, 0, 2);
    stage.say("then " + admin.minOffset(queue) + " to " + admin.maxOffset(queue));
    long earliest = admin.earliestMsgStoreTime(queue);
    stage.say("earliest is the first's: " + (earliest == stage.read(topic).get(0).getStoreTimestamp()));
    stage.sayRefusal("end of queue 7", () -> admin.maxOffset(stage.queue(topic, 7)));
    stage.say(admin.maxOffset(stage.queue(topic, 7)));
  }

  private static void groupOffsets(Stage stage) throws Exception {
    String topic = stage.topic(1);
    MessageQueue queue = stage.queue(topic, 0);
    String group = stage.group();
    DefaultMQPullConsumer puller = stage.puller(group);
    stage.say("none yet: " + puller.fetchConsumeOffset(queue, true));
    stage.send(topic, "m0", "m1", "m2");
    // Its group is known when its first heartbeat has come.
    Stage.until("a position", () -> {
      puller.getDefaultMQPullConsumerImpl().getOffsetStore().updateConsumeOffsetToBroker(queue, 2, false);
      return puller.fetchConsumeOffset(queue, true) == 2;
    });
    stage.say("then 2");
    // A real name server hears of the topic of its retries with the next registration.
    Stage.until("the group's route", () -> stage.clients.admin.examineConsumeStats(group) != null);
    var stats = stage.clients.admin.examineConsumeStats(group);
    stage.say("lag " + stats.computeTotalDiff() + ", queues " + stats.getOffsetTable().size());
    stage.sayRefusal("stats of nobody", () -> stage.clients.admin.examineConsumeStats(stage.group()));
  }

  /** Sends messages no two of which are stored in the same millisecond. */
  private static List<MessageExt> apart(Stage stage, String topic, int count) throws Exception {
    for (int number = 0; number < count; number++) {
      SendResult sent = stage.send(Stage.message(topic, "m" + number), 0);
      long stored = stage.clients.admin.viewMessage(topic, sent.getOffsetMsgId()).getStoreTimestamp();
      Stage.until("the next millisecond", () -> System.currentTimeMillis() > stored + 1);
    }
    return stage.read(topic);
  }

  private static void byTime(Stage stage) throws Exception {
    String topic = stage.topic(1);
    MessageQueue queue = stage.queue(topic, 0);
    var admin = stage.clients.admin;
    stage.say("empty: " + admin.searchOffset(queue, System.currentTimeMillis()));
    List<MessageExt> seen = apart(stage, topic, 4);
    stage.say("long ago " + admin.searchOffset(queue, 0));
    for (MessageExt message : seen) {
      stage.say("at " + Stage.text(message) + " " + admin.searchOffset(queue, message.getStoreTimestamp()));
      stage.say("after it " + admin.searchOffset(queue, message.getStoreTimestamp() + 1));
    }
    stage.say("in an hour " + admin.searchOffset(queue, System.currentTimeMillis() + 3_600_000));
  }

  private static void boundaries(Stage stage) throws Exception {
    String topic = stage.topic(1);
    MessageQueue queue = stage.queue(topic, 0);
    var admin = stage.clients.admin;
    List<MessageExt> seen = apart(stage, topic, 3);
    long second = seen.get(1).getStoreTimestamp();
    stage.say("lower " + admin.searchLowerBoundaryOffset(queue, second) + ", upper " + admin.searchUpperBoundaryOffset(queue, second));
    stage.say("before all: lower " + admin.searchLowerBoundaryOffset(queue, 1) + ", upper " + admin.searchUpperBoundaryOffset(queue, 1));
    long later = System.currentTimeMillis() + 3_600_000;
    stage.say("after all: lower " + admin.searchLowerBoundaryOffset(queue, later) + ", upper "
        + admin.searchUpperBoundaryOffset(queue, later));
    // What one batch holds is stored in one millisecond.
    String together = stage.topic(1);
    List<Message> batch = List.of(Stage.message(together, "a"), Stage.message(together, "b"), Stage.message(together, "c"));
    stage.sendBatch(new ArrayList<>(batch));
    long at = stage.read(together).get(0).getStoreTimestamp();
    for (BoundaryType type : BoundaryType.values()) {
      long found = stage.clients.api().searchOffset(stage.clients.broker, stage.queue(together, 0), at, type, Clients.TIMEOUT_MS);
      stage.say("three at once, " + type + ": " + found);
    }
  }

  private static void byPlace(Stage stage) throws Exception {
    String topic = stage.topic(1);
    var admin = stage.clients.admin;
    SendResult sent = stage.send(Stage.message(topic, "found"), 0);
    stage.say(Stage.text(admin.viewMessage(topic, sent.getOffsetMsgId())));
    String place = sent.getOffsetMsgId();
    String beyond = place.substring(0, 16) + "7FFFFFFFFFFFFFF0";
    stage.sayRefusal("beyond the end", () -> admin.viewMessage(topic, beyond));
    stage.sayRefusal("no id at all", () -> admin.viewMessage(topic, "nonsense"));
    stage.sayRefusal("by another topic", () -> Stage.text(admin.viewMessage(stage.topic(1), place)));
    byte[] bytes = Stage.text(admin.viewMessage(topic, sent.getMsgId())).getBytes(StandardCharsets.UTF_8);
    stage.say("by its unique key: " + new String(bytes, StandardCharsets.UTF_8));
  }
}
