package suite;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Sends of every kind, and what is refused. */
final class SendCases {
  private static final int MIB = 1024 * 1024;

  private SendCases() {}

  static void all(Suite suite) {
    suite.quick("send.sync", SendCases::sync);
    suite.slow("send.async", SendCases::async);
    suite.slow("send.one-way", SendCases::oneWay);
    suite.quick("send.selector", SendCases::selector);
    suite.slow("send.no-wait-for-the-store", SendCases::noWait);
    suite.quick("send.batch", SendCases::batch);
    suite.quick("send.batch.limits", SendCases::batchLimits);
    suite.quick("send.batch.too-large", SendCases::batchTooLarge);
    suite.slow("send.batch.of-2000", SendCases::batchOfMany);
    suite.quick("send.too-large", SendCases::tooLarge);
    suite.slow("send.empty", SendCases::empty);
    suite.quick("send.compressed", SendCases::compressed);
    suite.quick("send.topic.made-by-a-send", SendCases::autoCreated);
    suite.quick("send.topic.names", SendCases::names);
    suite.slow("send.topic.system", SendCases::systemTopics);
    suite.slow("send.topic.read-only", SendCases::readOnly);
    suite.slow("send.topic.write-only", SendCases::writeOnly);
    suite.quick("send.topic.fewer-read-queues", SendCases::fewerReadQueues);
    suite.slow("send.queue-that-is-not-there", SendCases::noSuchQueue);
    suite.quick("send.request-and-reply", SendCases::requestAndReply);
    suite.slow("send.request-without-reply", SendCases::requestWithoutReply);
  }

  private static void sync(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message message = Stage.tagged(topic, "tag", "body");
    message.setKeys("k1 k2");
    message.setFlag(7);
    message.putUserProperty("user", "value");
    SendResult first = stage.send(message);
    SendResult second = stage.send(Stage.message(topic, "second"));
    stage.say(first.getSendStatus() + " at " + first.getQueueOffset() + " and " + second.getQueueOffset());
    stage.say("two ids: " + !first.getMsgId().equals(second.getMsgId()));
    MessageExt seen = stage.read(topic).get(0);
    stage.say("flag " + seen.getFlag() + ", system flag " + seen.getSysFlag() + ", reconsumed " + seen.getReconsumeTimes());
    stage.say(Words.properties(seen));
    stage.say("id of the answer: " + seen.getMsgId().equals(first.getMsgId()));
    stage.say("unique key is the id: " + first.getMsgId().equals(seen.getProperty("UNIQ_KEY")));
    stage.say("stored where the answer says: "
        + (MessageDecoder.decodeMessageId(first.getOffsetMsgId()).getOffset() == seen.getCommitLogOffset()));
    stage.say("born " + seen.getBornHostString() + ", not stored before: " + (seen.getStoreTimestamp() >= seen.getBornTimestamp()));
  }

  private static void async(Stage stage) throws Exception {
    String topic = stage.topic(1);
    CompletableFuture<SendResult> answer = new CompletableFuture<>();
    stage.clients.producer.send(Stage.message(topic, "async"), new SendCallback() {
      @Override
      public void onSuccess(SendResult result) {
        answer.complete(result);
      }

      @Override
      public void onException(Throwable thrown) {
        answer.completeExceptionally(thrown);
      }
    });
    SendResult result = stage.sent(answer.get(Stage.LIMIT_MS, TimeUnit.MILLISECONDS), 1);
    stage.say(result.getSendStatus() + " at " + result.getQueueOffset() + ", read " + Words.bodies(stage.read(topic)));
  }

  private static void oneWay(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (int number = 0; number < 3; number++) {
      stage.clients.producer.sendOneway(Stage.message(topic, "m" + number));
      stage.awaitEnd(topic, 0, number + 1);
    }
    stage.say(Words.bodies(stage.read(topic)));
  }

  private static void selector(Stage stage) throws Exception {
    String topic = stage.topic(4);
    for (int number = 0; number < 12; number++) {
      stage.sent(stage.clients.producer.send(Stage.message(topic, "m" + number),
          (queues, message, key) -> queues.stream().filter(queue -> queue.getQueueId() == (int) key % 4).findFirst().get(),
          number % 3), 1);
    }
    for (int queue = 0; queue < 4; queue++) {
      stage.say("queue " + queue + ": " + Words.bodies(stage.read(topic, queue, "*")));
    }
  }

  private static void noWait(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message message = Stage.message(topic, "body");
    message.setWaitStoreMsgOK(false);
    stage.say(stage.send(message).getSendStatus());
    MessageExt seen = stage.read(topic).get(0);
    stage.say(Words.properties(seen) + ", waits " + seen.isWaitStoreMsgOK());
  }

  private static List<Message> messages(String topic, int count, String prefix) {
    List<Message> messages = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      messages.add(Stage.message(topic, prefix + number));
    }
    return messages;
  }

  private static void batch(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.send(topic, "before");
    List<Message> messages = messages(topic, 3, "m");
    messages.get(1).setTags("tag");
    messages.get(2).setKeys("key");
    messages.get(2).setFlag(9);
    messages.get(2).putUserProperty("user", "value");
    SendResult result = stage.sendBatch(messages);
    stage.say(result.getSendStatus() + " at " + result.getQueueOffset() + ", ids " + result.getMsgId().split(",").length
        + ", ids of places " + result.getOffsetMsgId().split(",").length);
    List<MessageExt> seen = stage.read(topic);
    stage.say(Words.bodies(seen));
    String ids = seen.stream().skip(1).map(MessageExt::getMsgId).collect(Collectors.joining(","));
    stage.say("ids are the messages': " + ids.equals(result.getMsgId()));
    for (MessageExt message : seen) {
      stage.say(message.getQueueOffset() + " " + Words.properties(message) + " flag " + message.getFlag());
    }
    MessageExt found = stage.clients.admin.viewMessage(topic, result.getOffsetMsgId().split(",")[1]);
    stage.say("the second by its place: " + Stage.text(found));
  }

  private static void batchLimits(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String other = stage.topic(1);
    DefaultMQProducer producer = stage.clients.producer;
    stage.sayRefusal("none", () -> producer.send(new ArrayList<Message>()));
    List<Message> mixed = messages(topic, 1, "m");
    mixed.addAll(messages(other, 1, "m"));
    stage.sayRefusal("two topics", () -> producer.send(mixed));
    List<Message> delayed = messages(topic, 2, "m");
    delayed.get(1).setDelayTimeLevel(1);
    stage.sayRefusal("a delay", () -> producer.send(delayed));
    List<Message> waiting = messages(topic, 2, "m");
    waiting.get(1).setWaitStoreMsgOK(false);
    stage.sayRefusal("one that does not wait", () -> producer.send(waiting));
    stage.sayRefusal("retries", () -> producer.send(messages("%RETRY%" + stage.group(), 2, "m")));
    List<Message> hollow = messages(topic, 2, "m");
    hollow.get(0).setBody(new byte[0]);
    stage.sayRefusal("an empty one", () -> producer.send(hollow));
    List<Message> timed = messages(topic, 2, "m");
    timed.get(1).setDelayTimeSec(1);
    stage.sayRefusal("a time", () -> producer.send(timed));
    stage.say("stored " + Words.bodies(stage.read(topic)));
  }

  private static List<Message> large(String topic, int count, int size) {
    List<Message> messages = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      messages.add(new Message(topic, new byte[size]));
    }
    return messages;
  }

  private static void batchTooLarge(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.sayRefusal("4 MiB", () -> stage.clients.producer.send(large(topic, 4, MIB)));
    DefaultMQProducer generous = stage.producer("a");
    generous.setMaxMessageSize(64 * MIB);
    stage.sayRefusal("4 MiB and a generous client", () -> generous.send(large(topic, 4, MIB)));
    stage.sayRefusal("3 MiB", () -> stage.sendBatch(large(topic, 3, MIB)));
    stage.awaitEnd(topic, 0, 3);
    stage.say("end " + stage.clients.admin.maxOffset(stage.queue(topic, 0)));
  }

  private static void batchOfMany(Stage stage) throws Exception {
    String topic = stage.topic(1);
    SendResult result = stage.sendBatch(messages(topic, 2000, "m"));
    stage.say(result.getSendStatus() + " with " + result.getMsgId().split(",").length + " ids");
    List<MessageExt> seen = stage.read(topic);
    boolean inOrder = true;
    for (int number = 0; number < seen.size(); number++) {
      inOrder &= Stage.text(seen.get(number)).equals("m" + number) && seen.get(number).getQueueOffset() == number;
    }
    stage.say(seen.size() + " in order: " + inOrder);
  }

  private static void tooLarge(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.sayRefusal("a byte more than 4 MiB", () -> stage.send(new Message(topic, new byte[4 * MIB + 1])));
    DefaultMQProducer generous = stage.producer("a");
    generous.setMaxMessageSize(64 * MIB);
    stage.sayRefusal("and a generous client", () -> generous.send(new Message(topic, new byte[4 * MIB + 1])));
    stage.sayRefusal("4 MiB", () -> stage.sent(generous.send(new Message(topic, new byte[4 * MIB])), 1));
    List<MessageExt> seen = stage.read(topic);
    stage.say("stored " + seen.stream().map(message -> message.getBody().length).collect(Collectors.toList()));
  }

  private static void empty(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.sayRefusal("no body", () -> stage.send(new Message(topic, null)));
    stage.sayRefusal("an empty body", () -> stage.send(new Message(topic, new byte[0])));
    stage.sayRefusal("no topic", () -> stage.send(new Message("", "b".getBytes(StandardCharsets.UTF_8))));
    stage.sayRefusal("nothing", () -> stage.clients.producer.send((Message) null));
  }

  private static void compressed(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String body = "compressible ".repeat(1000);
    for (CompressionType type : CompressionType.values()) {
      DefaultMQProducer producer = stage.producer("a");
      producer.setCompressMsgBodyOverHowmuch(100);
      producer.setCompressType(type);
      stage.say(type + " " + stage.sent(producer.send(Stage.message(topic, body)), 1).getSendStatus());
    }
    for (MessageExt seen : stage.read(topic)) {
      stage.say("read as sent: " + Stage.text(seen).equals(body));
    }
  }

  private static void autoCreated(Stage stage) throws Exception {
    String topic = stage.topicName();
    stage.say(stage.send(Stage.message(topic, "first")).getSendStatus());
    Stage.until("a route", () -> !stage.clients.admin.examineTopicRouteInfo(topic).getQueueDatas().isEmpty());
    var queues = stage.clients.admin.examineTopicRouteInfo(topic).getQueueDatas().get(0);
    stage.say("queues to read " + queues.getReadQueueNums() + ", to write " + queues.getWriteQueueNums() + ", permission "
        + queues.getPerm());
    String fewer = stage.topicName();
    DefaultMQProducer producer = stage.producer("a");
    producer.setDefaultTopicQueueNums(2);
    stage.say(producer.send(Stage.message(fewer, "first")).getSendStatus());
    Stage.until("a route", () -> !stage.clients.admin.examineTopicRouteInfo(fewer).getQueueDatas().isEmpty());
    stage.say("asked for 2: " + stage.clients.admin.examineTopicRouteInfo(fewer).getQueueDatas().get(0).getWriteQueueNums());
  }

  private static void names(Stage stage) throws Exception {
    String longest = (stage.topicName() + "_").concat("n".repeat(127)).substring(0, 127);
    stage.say(stage.send(Stage.message(longest, "first")).getSendStatus() + " for 127 characters");
    stage.sayRefusal("128 characters", () -> stage.send(Stage.message("n".repeat(128), "b")));
    for (String name : List.of("with.dot", "with space", "ümlaut", "a/b", "$dollar")) {
      stage.sayRefusal(name, () -> stage.send(Stage.message(name, "b")));
    }
    for (String name : List.of("with|bar", "with%percent", "-_-")) {
      stage.sayRefusal(name, () -> stage.send(Stage.message(name, "b")));
    }
  }

  /** Not rmq_sys_wheel_timer: the timer of a real broker that was sent to goes over what it cannot read for ever. */
  private static void systemTopics(Stage stage) throws Exception {
    for (String name : List.of("TBW102", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT")) {
      stage.sayRefusal(name, () -> stage.send(Stage.message(name, "b")));
    }
  }

  private static void readOnly(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.send(topic, "before");
    stage.topic(topic, 1, 1, 4);
    DefaultMQProducer producer = stage.producer("never_seen_before");
    stage.sayRefusal("a send", () -> producer.send(Stage.message(topic, "b")));
    stage.say("read " + Words.bodies(stage.read(topic)));
  }

  private static void writeOnly(Stage stage) throws Exception {
    String topic = stage.topic(1);
    stage.send(topic, "before");
    stage.topic(topic, 1, 1, 2);
    stage.say(stage.send(Stage.message(topic, "more")).getSendStatus());
    stage.sayRefusal("a pull", () -> stage.read(topic));
  }

  private static void fewerReadQueues(Stage stage) throws Exception {
    String topic = stage.topic(2, 4, 6);
    Set<Integer> written = stage.clients.producer.fetchPublishMessageQueues(topic).stream().map(MessageQueue::getQueueId)
        .collect(Collectors.toCollection(java.util.TreeSet::new));
    Set<Integer> read = stage.puller(stage.group()).fetchSubscribeMessageQueues(topic).stream()
        .map(MessageQueue::getQueueId).collect(Collectors.toCollection(java.util.TreeSet::new));
    stage.say("writes " + written + ", reads " + read);
    stage.send(Stage.message(topic, "hidden"), 3);
    stage.awaitEnd(topic, 3, 1);
    stage.say("end of queue 3: " + stage.clients.admin.maxOffset(stage.queue(topic, 3)));
    stage.sayRefusal("a pull of queue 3", () -> stage.read(topic, 3, "*"));
    stage.topic(topic, 4, 4, 6);
    stage.say("with 4 to read: " + Words.bodies(stage.read(topic, 3, "*")));
  }

  private static void noSuchQueue(Stage stage) throws Exception {
    String topic = stage.topic(2);
    stage.sayRefusal("queue 2 of 2", () -> stage.send(Stage.message(topic, "b"), 2));
    stage.sayRefusal("queue 99", () -> stage.send(Stage.message(topic, "b"), 99));
  }

  private static void requestAndReply(Stage stage) throws Exception {
    String topic = stage.topic(1);
    DefaultMQProducer replier = stage.producer("b");
    DefaultMQPushConsumer consumer = stage.push(stage.group(), "b");
    consumer.subscribe(topic, "*");
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      try {
        for (MessageExt message : messages) {
          byte[] body = ("reply to " + Stage.text(message)).getBytes(StandardCharsets.UTF_8);
          replier.send(MessageUtil.createReplyMessage(message, body));
        }
      } catch (Exception thrown) {
        thrown.printStackTrace();
      }
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    Message reply = stage.producer("c").request(Stage.message(topic, "question"), Stage.LIMIT_MS);
    stage.say(Stage.text(reply));
    stage.say(new java.util.TreeSet<>(reply.getProperties().keySet()).stream()
        .filter(name -> !Set.of("MSG_REGION", "TRACE_ON", "CLUSTER", "UNIQ_KEY").contains(name))
        .collect(Collectors.joining(",")));
  }

  private static void requestWithoutReply(Stage stage) throws Exception {
    String topic = stage.topic(1);
    DefaultMQProducer producer = stage.producer("c");
    stage.send(topic, "before");
    String refusal = stage.refusal(() -> producer.request(Stage.message(topic, "question"), 3_000));
    stage.say(refusal.replaceAll("[0-9.]+ ?ms", "N ms"));
    stage.say("stored " + Words.bodies(stage.read(topic)));
  }
}
