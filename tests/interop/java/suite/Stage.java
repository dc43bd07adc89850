package suite;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What one case works with: names and clients of its own, which end with it, and its verdict. */
final class Stage implements AutoCloseable {
  /** For any condition, however slow the machine. */
  static final long LIMIT_MS = 120_000;

  final Clients clients;
  private final List<String> verdict = new ArrayList<>();
  private final Map<String, String> names = new LinkedHashMap<>();
  private final Deque<AutoCloseable> open = new ArrayDeque<>();
  private final Map<MessageQueue, Long> ends = new HashMap<>();

  Stage(Clients clients) {
    this.clients = clients;
  }

  // ---- the verdict

  /** Adds to the verdict. Names of the case's topics and groups become T1, G1 and so on. */
  synchronized void say(Object words) {
    String text = String.valueOf(words);
    for (Map.Entry<String, String> name : names.entrySet()) {
      text = text.replace(name.getKey(), name.getValue());
    }
    verdict.add(text.replaceAll("/?127\\.0\\.0\\.1:[0-9]+", "ADDRESS").replaceAll("[\\t\\r\\n]+", " "));
  }

  synchronized String verdict() {
    return String.join("\t", verdict);
  }

  /** Says what an action is refused with, or that it is not. */
  void sayRefusal(String what, Callable<?> action) {
    say(what + ": " + refusal(action));
  }

  /** The same, with what is another one each time masked. */
  void sayRefusal(String what, Callable<?> action, String pattern, String mask) {
    say(what + ": " + refusal(action).replaceAll(pattern, mask));
  }

  String refusal(Callable<?> action) {
    try {
      Object result = action.call();
      return result instanceof SendResult ? ((SendResult) result).getSendStatus().toString() : "done";
    } catch (MQBrokerException refused) {
      return "broker says " + refused.getResponseCode() + " " + refused.getErrorMessage();
    } catch (MQClientException refused) {
      Throwable cause = refused.getCause();
      if (cause instanceof MQBrokerException) {
        return refusal(() -> {
          throw (MQBrokerException) cause;
        });
      }
      String text = refused.getErrorMessage() == null ? refused.getMessage() : refused.getErrorMessage();
      return "client says " + refused.getResponseCode() + " " + text.split("\n")[0];
    } catch (Exception refused) {
      return refused.getClass().getSimpleName() + " " + refused.getMessage();
    }
  }

  // ---- names

  /** The name of a topic that is not there yet. */
  String topicName() {
    return known(clients.name("t"), "T");
  }

  /** A name that the verdict shows as this letter and a number. */
  private synchronized String known(String name, String letter) {
    long alike = names.values().stream().filter(other -> other.startsWith(letter)).count();
    names.put(name, letter + (alike + 1));
    return name;
  }

  String group() {
    return known(clients.name("g"), "G");
  }

  /** A new topic with so many queues. */
  String topic(int queues) throws Exception {
    return topic(queues, queues, 6);
  }

  String topic(int readQueues, int writeQueues, int permission) throws Exception {
    String topic = topicName();
    topic(topic, readQueues, writeQueues, permission);
    return topic;
  }

  void topic(String topic, int readQueues, int writeQueues, int permission) throws Exception {
    clients.admin.createAndUpdateTopicConfig(clients.broker,
        new TopicConfig(topic, readQueues, writeQueues, permission));
    awaitRoute(topic, readQueues, writeQueues, permission);
  }

  void awaitRoute(String topic, int readQueues, int writeQueues, int permission) throws Exception {
    until("a route of " + topic, () -> clients.admin.examineTopicRouteInfo(topic).getQueueDatas().stream().anyMatch(
        queue -> queue.getReadQueueNums() == readQueues && queue.getWriteQueueNums() == writeQueues
            && queue.getPerm() == permission));
    // A producer that has no route yet when it sends takes that of a topic to be made.
    if (permission == 6) {
      until("the producer's route of " + topic, () -> {
        clients.shared().updateTopicRouteInfoFromNameServer(topic);
        var route = clients.shared().getAnExistTopicRouteData(topic);
        return route != null && route.getQueueDatas().get(0).getWriteQueueNums() == writeQueues;
      });
    }
  }

  MessageQueue queue(String topic, int queue) throws Exception {
    return new MessageQueue(topic, brokerName(), queue);
  }

  String brokerName() throws Exception {
    return clients.admin.examineBrokerClusterInfo().getBrokerAddrTable().keySet().iterator().next();
  }

  // ---- messages

  static Message message(String topic, String body) {
    return new Message(topic, body.getBytes(StandardCharsets.UTF_8));
  }

  static Message tagged(String topic, String tag, String body) {
    return new Message(topic, tag, body.getBytes(StandardCharsets.UTF_8));
  }

  static String text(Message message) {
    return new String(message.getBody(), StandardCharsets.UTF_8);
  }

  SendResult send(Message message) throws Exception {
    SendResult result = clients.producer.send(message);
    return delays(message) ? result : sent(result, 1);
  }

  SendResult send(Message message, int queue) throws Exception {
    SendResult result = clients.producer.send(message, queue(message.getTopic(), queue));
    return delays(message) ? result : sent(result, 1);
  }

  SendResult sendBatch(List<Message> batch) throws Exception {
    return sent(clients.producer.send(batch), batch.size());
  }

  private static boolean delays(Message message) {
    return message.getProperties().keySet().stream().anyMatch(name -> name.equals("DELAY") || name.startsWith("TIMER_"));
  }

  /** So many messages are there from the answer's place on: {@link #read} waits until readers see them. */
  SendResult sent(SendResult result, int count) {
    synchronized (ends) {
      ends.merge(result.getMessageQueue(), result.getQueueOffset() + count, Math::max);
    }
    return result;
  }

  /** Sends bodies to queue 0, one after another. */
  void send(String topic, String... bodies) throws Exception {
    for (String body : bodies) {
      send(message(topic, body), 0);
    }
  }

  /** All messages of a queue that match a tag expression, read from its start. */
  List<MessageExt> read(String topic, int queue, String tags) throws Exception {
    DefaultMQPullConsumer puller = puller(group());
    List<MessageExt> messages = new ArrayList<>();
    MessageQueue from = queue(topic, queue);
    synchronized (ends) {
      awaitEnd(topic, queue, ends.getOrDefault(from, 0L));
    }
    long offset = puller.minOffset(from);
    while (offset < puller.maxOffset(from)) {
      PullResult pulled = puller.pull(from, tags, offset, 32);
      if (pulled.getPullStatus() == PullStatus.FOUND) {
        messages.addAll(pulled.getMsgFoundList());
      }
      offset = pulled.getNextBeginOffset();
    }
    return messages;
  }

  List<MessageExt> read(String topic) throws Exception {
    return read(topic, 0, "*");
  }

  /** Waits until the queue ends there. */
  void awaitEnd(String topic, int queue, long end) throws Exception {
    MessageQueue of = queue(topic, queue);
    until("an end of " + end, () -> clients.admin.maxOffset(of) >= end);
  }

  // ---- clients

  /** Ends with the case, the last one first. */
  <T extends AutoCloseable> T closing(T closeable) {
    synchronized (open) {
      open.push(closeable);
    }
    return closeable;
  }

  /**
   * A push consumer, not started yet. One thread hands over what is in a queue in its order: the last one comes last.
   * It begins with the first message: by its default it may miss what is sent to an empty queue while it starts.
   */
  DefaultMQPushConsumer push(String group, String member) {
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
    alone(consumer, group, member);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setConsumeThreadMin(1);
    consumer.setConsumeThreadMax(1);
    closing(consumer::shutdown);
    return consumer;
  }

  /**
   * A consumer has a client instance of its own. In a shared one a heartbeat that another one's start sends may bring
   * back a member that just left, and the threads that it interrupts close the connection of all.
   */
  private void alone(ClientConfig consumer, String group, String member) {
    clients.settle(consumer, group + "_" + member);
  }

  DefaultMQPullConsumer puller(String group) throws Exception {
    DefaultMQPullConsumer puller = new DefaultMQPullConsumer(group);
    clients.settle(puller, Clients.PULLING);
    puller.setConsumerPullTimeoutMillis(LIMIT_MS);
    puller.start();
    closing(puller::shutdown);
    return puller;
  }

  /** A lite pull consumer, not started yet. */
  DefaultLitePullConsumer lite(String group, String member) {
    DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
    alone(consumer, group, member);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setPullThreadNums(2);
    closing(consumer::shutdown);
    return consumer;
  }

  /** A started producer of this case alone. */
  DefaultMQProducer producer(String instance) throws Exception {
    DefaultMQProducer producer = clients.producer(group(), instance);
    producer.start();
    closing(producer::shutdown);
    return producer;
  }

  /** Waits for a condition. */
  static void until(String what, Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + LIMIT_MS * 1_000_000;
    Exception last = null;
    while (System.nanoTime() < end) {
      try {
        if (condition.call()) {
          return;
        }
        last = null;
      } catch (MQBrokerException | MQClientException notYet) {
        last = notYet;
      }
      Thread.sleep(30);
    }
    throw new IllegalStateException("in vain waited for " + what + (last == null ? "" : ": " + last));
  }

  @Override
  public void close() {
    synchronized (open) {
      while (!open.isEmpty()) {
        try {
          open.pop().close();
        } catch (Exception thrown) {
          thrown.printStackTrace();
        }
      }
    }
  }
}
