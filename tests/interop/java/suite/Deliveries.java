package suite;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;

/** What listeners were given, in the order of the calls. */
final class Deliveries {
  private final List<MessageExt> seen = new ArrayList<>();
  /** Of each one when it was given: a client counts in the message itself. */
  private final List<Integer> reconsumed = new ArrayList<>();
  private final List<Integer> sizes = new ArrayList<>();

  private synchronized void add(List<MessageExt> messages) {
    seen.addAll(messages);
    messages.forEach(message -> reconsumed.add(message.getReconsumeTimes()));
    sizes.add(messages.size());
  }

  /** A listener that takes all. */
  MessageListenerConcurrently taking() {
    return concurrently(message -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
  }

  /** A listener that answers for the first message of a call. */
  MessageListenerConcurrently concurrently(Function<MessageExt, ConsumeConcurrentlyStatus> answer) {
    return (messages, context) -> {
      add(messages);
      return answer.apply(messages.get(0));
    };
  }

  MessageListenerConcurrently failing(Predicate<MessageExt> fails) {
    return concurrently(message -> fails.test(message) ? ConsumeConcurrentlyStatus.RECONSUME_LATER
        : ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
  }

  MessageListenerOrderly orderly(Function<MessageExt, ConsumeOrderlyStatus> answer) {
    return (messages, context) -> {
      // Soon again: the default is a second.
      context.setSuspendCurrentQueueTimeMillis(100);
      add(messages);
      return answer.apply(messages.get(0));
    };
  }

  MessageListenerOrderly takingInOrder() {
    return orderly(message -> ConsumeOrderlyStatus.SUCCESS);
  }

  /** For listeners that look at more. */
  void note(List<MessageExt> messages) {
    add(messages);
  }

  synchronized List<MessageExt> all() {
    return new ArrayList<>(seen);
  }

  synchronized List<Integer> sizes() {
    return new ArrayList<>(sizes);
  }

  List<MessageExt> of(String body) {
    return all().stream().filter(message -> Stage.text(message).equals(body)).collect(Collectors.toList());
  }

  Deliveries await(int count) throws Exception {
    Stage.until(count + " deliveries", () -> all().size() >= count);
    return this;
  }

  Deliveries await(String body) throws Exception {
    Stage.until("a delivery of " + body, () -> !of(body).isEmpty());
    return this;
  }

  String bodies() {
    return Words.bodies(all());
  }

  String sorted() {
    return Words.sortedBodies(all());
  }

  /** The bodies queue by queue, as they came. */
  String byQueue() {
    TreeMap<Integer, List<MessageExt>> queues = new TreeMap<>();
    for (MessageExt message : all()) {
      queues.computeIfAbsent(message.getQueueId(), queue -> new ArrayList<>()).add(message);
    }
    return queues.entrySet().stream().map(queue -> queue.getKey() + ": " + Words.bodies(queue.getValue()))
        .collect(Collectors.joining(" "));
  }

  /** How often each delivery of a body had come before. */
  synchronized String times(String body) {
    List<String> times = new ArrayList<>();
    for (int at = 0; at < seen.size(); at++) {
      if (Stage.text(seen.get(at)).equals(body)) {
        times.add(String.valueOf(reconsumed.get(at)));
      }
    }
    return String.join(",", times);
  }
}
