package suite;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.AckCallback;
import org.apache.rocketmq.client.consumer.AckResult;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PopCallback;
import org.apache.rocketmq.client.consumer.PopResult;
import org.apache.rocketmq.common.constant.ConsumeInitMode;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.header.AckMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.ChangeInvisibleTimeRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;
import org.apache.rocketmq.remoting.protocol.header.NotificationRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PeekMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PopMessageRequestHeader;

/** Pops: messages that are invisible for a time, then gone or there again. */
final class PopCases {
  private PopCases() {}

  static void all(Suite suite) {
    suite.slow("pop.push-consumer", PopCases::pushConsumer);
    suite.slow("pop.acknowledged", PopCases::acknowledged);
    suite.slow("pop.not-acknowledged", PopCases::notAcknowledged);
    suite.slow("pop.invisible-for-longer", PopCases::longer);
    suite.slow("pop.in-order", PopCases::inOrder);
    suite.slow("pop.by-tag", PopCases::byTag);
    suite.slow("pop.acknowledged-together", PopCases::acknowledgedTogether);
    suite.slow("pop.notified", PopCases::notified);
    suite.slow("pop.peeked", PopCases::peeked);
  }

  private static PopMessageRequestHeader header(String group, String topic, int most, long invisibleMs, String tags, boolean order) {
    PopMessageRequestHeader header = new PopMessageRequestHeader();
    header.setConsumerGroup(group);
    header.setTopic(topic);
    header.setQueueId(0);
    header.setMaxMsgNums(most);
    header.setInvisibleTime(invisibleMs);
    header.setPollTime(3_000);
    header.setBornTime(System.currentTimeMillis());
    header.setInitMode(ConsumeInitMode.MIN);
    header.setExpType("TAG");
    header.setExp(tags);
    header.setOrder(order);
    return header;
  }

  /** What one pop gives; nothing when it has waited in vain. */
  private static List<MessageExt> pop(Stage stage, PopMessageRequestHeader header) throws Exception {
    CompletableFuture<PopResult> answer = new CompletableFuture<>();
    stage.clients.api().popMessageAsync(stage.brokerName(), stage.clients.broker, header, Clients.TIMEOUT_MS, new PopCallback() {
      @Override
      public void onSuccess(PopResult result) {
        answer.complete(result);
      }

      @Override
      public void onException(Throwable thrown) {
        answer.completeExceptionally(thrown);
      }
    });
    List<MessageExt> found = answer.get(Stage.LIMIT_MS, TimeUnit.MILLISECONDS).getMsgFoundList();
    return found == null ? List.of() : found;
  }

  /** Pops until something comes. */
  private static List<MessageExt> await(Stage stage, String group, String topic, int most, long invisibleMs, String tags, boolean order)
      throws Exception {
    List<MessageExt> found = new ArrayList<>();
    Stage.until("a message", () -> {
      found.addAll(pop(stage, header(group, topic, most, invisibleMs, tags, order)));
      return !found.isEmpty();
    });
    return found;
  }

  private static String settle(Stage stage, String group, MessageExt message, long invisibleMs) throws Exception {
    String extra = message.getProperty("POP_CK");
    String[] parts = ExtraInfoUtil.split(extra);
    Acknowledgement answer = new Acknowledgement();
    if (invisibleMs == 0) {
      AckMessageRequestHeader header = new AckMessageRequestHeader();
      header.setConsumerGroup(group);
      header.setTopic(ExtraInfoUtil.getRealTopic(parts, message.getTopic(), group));
      header.setQueueId(ExtraInfoUtil.getQueueId(parts));
      header.setOffset(ExtraInfoUtil.getQueueOffset(parts));
      header.setExtraInfo(extra);
      stage.clients.api().ackMessageAsync(stage.clients.broker, Clients.TIMEOUT_MS, answer, header);
    } else {
      ChangeInvisibleTimeRequestHeader header = new ChangeInvisibleTimeRequestHeader();
      header.setConsumerGroup(group);
      header.setTopic(ExtraInfoUtil.getRealTopic(parts, message.getTopic(), group));
      header.setQueueId(ExtraInfoUtil.getQueueId(parts));
      header.setOffset(ExtraInfoUtil.getQueueOffset(parts));
      header.setExtraInfo(extra);
      header.setInvisibleTime(invisibleMs);
      stage.clients.api().changeInvisibleTimeAsync(stage.brokerName(), stage.clients.broker, header, Clients.TIMEOUT_MS, answer);
    }
    return answer.status();
  }

  /** The answer to an acknowledgement. */
  private static final class Acknowledgement implements AckCallback {
    private final CompletableFuture<AckResult> answer = new CompletableFuture<>();

    @Override
    public void onSuccess(AckResult result) {
      answer.complete(result);
    }

    @Override
    public void onException(Throwable thrown) {
      answer.completeExceptionally(thrown);
    }

    String status() throws Exception {
      return answer.get(Stage.LIMIT_MS, TimeUnit.MILLISECONDS).getStatus().toString();
    }
  }

  /** The answer to a request that no method of the client makes. */
  private static RemotingCommand ask(Stage stage, int code, CommandCustomHeader header) throws Exception {
    RemotingCommand request = RemotingCommand.createRequestCommand(code, header);
    return stage.clients.api().getRemotingClient().invokeSync(stage.clients.broker, request, Clients.TIMEOUT_MS);
  }

  private static void pushConsumer(Stage stage) throws Exception {
    String topic = stage.topic(2);
    String group = stage.group();
    stage.clients.admin.setMessageRequestMode(stage.clients.broker, topic, group, MessageRequestMode.POP, 0, Clients.TIMEOUT_MS);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(group, "a");
    consumer.subscribe(topic, "*");
    consumer.setClientRebalance(false);
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    for (int number = 0; number < 6; number++) {
      stage.send(Stage.message(topic, "m" + number), number % 2);
    }
    deliveries.await(6);
    stage.say(deliveries.sorted());
  }

  private static void acknowledged(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    stage.send(topic, "m0", "m1");
    stage.awaitEnd(topic, 0, 2);
    List<MessageExt> found = await(stage, group, topic, 32, 2_000, "*", false);
    stage.say("popped " + Words.bodies(found));
    for (MessageExt message : found) {
      stage.say(settle(stage, group, message, 0));
    }
    // Until one that is not acknowledged comes again: those would have come again before it.
    stage.send(topic, "m2");
    List<MessageExt> then = new ArrayList<>(await(stage, group, topic, 32, 2_000, "*", false));
    Stage.until("it comes again", () -> {
      then.addAll(pop(stage, header(group, topic, 32, 60_000, "*", false)));
      return then.size() > 1;
    });
    stage.say("then " + Words.sortedBodies(then));
  }

  private static void notAcknowledged(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    stage.send(topic, "m");
    stage.awaitEnd(topic, 0, 1);
    MessageExt first = await(stage, group, topic, 32, 3_000, "*", false).get(0);
    long began = System.nanoTime();
    MessageExt again = await(stage, group, topic, 32, 60_000, "*", false).get(0);
    stage.say("popped " + Stage.text(first) + ", reconsumed " + first.getReconsumeTimes());
    stage.say("2 s later at least: " + (System.nanoTime() - began >= 2_000_000_000L));
    stage.say("again " + Stage.text(again) + ", reconsumed " + again.getReconsumeTimes() + ", of " + again.getTopic());
    stage.say(settle(stage, group, again, 0));
  }

  private static void longer(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    stage.send(topic, "m");
    stage.awaitEnd(topic, 0, 1);
    MessageExt first = await(stage, group, topic, 32, 20_000, "*", false).get(0);
    long began = System.nanoTime();
    stage.say(settle(stage, group, first, 3_000));
    MessageExt again = await(stage, group, topic, 32, 60_000, "*", false).get(0);
    stage.say("2 s later at least: " + (System.nanoTime() - began >= 2_000_000_000L) + ", again " + Stage.text(again));
  }

  private static void inOrder(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    stage.send(topic, "m0", "m1", "m2");
    stage.awaitEnd(topic, 0, 3);
    MessageExt first = await(stage, group, topic, 1, 60_000, "*", true).get(0);
    stage.say("first " + Stage.text(first));
    stage.say("while it is out: " + Words.bodies(pop(stage, header(group, topic, 1, 60_000, "*", true))));
    stage.say(settle(stage, group, first, 0));
    stage.say("then " + Words.bodies(await(stage, group, topic, 1, 60_000, "*", true)));
  }

  private static void byTag(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    for (String tag : List.of("A", "B", "A")) {
      stage.send(Stage.tagged(topic, tag, "of " + tag), 0);
    }
    stage.awaitEnd(topic, 0, 3);
    stage.say(Words.bodies(await(stage, group, topic, 32, 60_000, "A", false)));
  }

  private static void acknowledgedTogether(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    stage.send(topic, "m0", "m1", "m2");
    stage.awaitEnd(topic, 0, 3);
    List<MessageExt> found = await(stage, group, topic, 32, 2_000, "*", false);
    stage.say("popped " + Words.bodies(found));
    List<String> handles = found.stream().filter(message -> !Stage.text(message).equals("m1"))
        .map(message -> message.getProperty("POP_CK")).collect(Collectors.toList());
    Acknowledgement answer = new Acknowledgement();
    stage.clients.api().batchAckMessageAsync(stage.clients.broker, Clients.TIMEOUT_MS, answer, topic, group, handles);
    stage.say(answer.status());
    stage.say("again " + Words.bodies(await(stage, group, topic, 32, 60_000, "*", false)));
  }

  private static void notified(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    // A group has a place in the queue once it popped.
    stage.say("popped " + Words.bodies(pop(stage, header(group, topic, 1, 60_000, "*", false))));
    NotificationRequestHeader header = new NotificationRequestHeader();
    header.setConsumerGroup(group);
    header.setTopic(topic);
    header.setQueueId(0);
    header.setPollTime(500);
    header.setBornTime(System.currentTimeMillis());
    stage.say("of nothing: " + ask(stage, RequestCode.NOTIFICATION, header).getExtFields().get("hasMsg"));
    stage.send(topic, "m");
    stage.awaitEnd(topic, 0, 1);
    header.setBornTime(System.currentTimeMillis());
    stage.say("of one: " + ask(stage, RequestCode.NOTIFICATION, header).getExtFields().get("hasMsg"));
    stage.say("popped " + Words.bodies(await(stage, group, topic, 32, 60_000, "*", false)));
  }

  private static void peeked(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    stage.send(topic, "m0", "m1");
    stage.awaitEnd(topic, 0, 2);
    PeekMessageRequestHeader header = new PeekMessageRequestHeader();
    header.setConsumerGroup(group);
    header.setTopic(topic);
    header.setQueueId(0);
    header.setMaxMsgNums(32);
    for (int time = 0; time < 2; time++) {
      RemotingCommand answer = ask(stage, RequestCode.PEEK_MESSAGE, header);
      stage.say("seen " + Words.bodies(MessageDecoder.decodes(ByteBuffer.wrap(answer.getBody()))));
    }
    stage.say("popped " + Words.bodies(await(stage, group, topic, 32, 60_000, "*", false)));
  }
}
