package suite;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.trace.TraceType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What clients write about themselves when they are asked to. */
final class TraceCases {
  private TraceCases() {}

  static void all(Suite suite) {
    suite.quick("trace.send", TraceCases::send);
    suite.slow("trace.consume", TraceCases::consume);
    suite.slow("trace.own-topic", TraceCases::ownTopic);
    suite.slow("trace.found-by-id", TraceCases::foundById);
  }

  private static DefaultMQProducer traced(Stage stage, String group, String traceTopic) throws Exception {
    DefaultMQProducer producer = new DefaultMQProducer(group, null, true, traceTopic);
    stage.clients.settle(producer, "traced_" + group);
    producer.setSendMsgTimeout((int) Clients.TIMEOUT_MS);
    producer.start();
    stage.closing(producer::shutdown);
    return producer;
  }

  /** Traces of a type about a message, once there are some. */
  private static List<TraceContext> traces(Stage stage, String traceTopic, String id, TraceType type, int count) throws Exception {
    List<TraceContext> found = new ArrayList<>();
    Stage.until("traces of " + type, () -> {
      found.clear();
      for (MessageQueue queue : stage.puller(stage.group()).fetchSubscribeMessageQueues(traceTopic)) {
        for (MessageExt message : stage.read(traceTopic, queue.getQueueId(), "*")) {
          for (TraceContext context : TraceDataEncoder.decoderFromTraceDataString(new String(message.getBody(), StandardCharsets.UTF_8))) {
            if (context.getTraceType() == type && context.getTraceBeans().stream().anyMatch(bean -> bean.getMsgId().equals(id))) {
              found.add(context);
            }
          }
        }
      }
      return found.size() >= count;
    });
    return found;
  }

  private static String shown(TraceContext context) {
    TraceBean bean = context.getTraceBeans().get(0);
    return context.getTraceType() + " by " + context.getGroupName() + " of " + bean.getTopic() + ", tags " + bean.getTags() + ", keys "
        + bean.getKeys() + ", succeeded " + context.isSuccess();
  }

  private static void send(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message message = Stage.tagged(topic, "tag", "body");
    message.setKeys("key");
    SendResult sent = traced(stage, stage.group(), null).send(message);
    TraceContext context = traces(stage, "RMQ_SYS_TRACE_TOPIC", sent.getMsgId(), TraceType.Pub, 1).get(0);
    TraceBean bean = context.getTraceBeans().get(0);
    stage.say(shown(context));
    stage.say("length " + bean.getBodyLength() + ", " + bean.getMsgType() + ", place is the answer's: "
        + sent.getOffsetMsgId().equals(bean.getOffsetMsgId()));
    stage.say("region " + context.getRegionId());
  }

  private static void consume(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group, null,
        new org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely(), true, null);
    stage.clients.settle(consumer, "traced_" + group);
    consumer.subscribe(topic, "*");
    Deliveries deliveries = new Deliveries();
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      deliveries.note(messages);
      context.setDelayLevelWhenNextConsume(1);
      return messages.get(0).getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER
          : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    consumer.start();
    stage.closing(consumer::shutdown);
    stage.clients.findRetriesSoon(consumer, group);
    SendResult sent = stage.send(Stage.tagged(topic, "tag", "m"), 0);
    deliveries.await(2);
    List<TraceContext> before = traces(stage, "RMQ_SYS_TRACE_TOPIC", sent.getMsgId(), TraceType.SubBefore, 2);
    List<TraceContext> after = traces(stage, "RMQ_SYS_TRACE_TOPIC", sent.getMsgId(), TraceType.SubAfter, 2);
    stage.say("before: " + before.stream().map(context -> context.getGroupName() + " retries " + context.getTraceBeans().get(0).getRetryTimes())
        .sorted().collect(Collectors.joining(", ")));
    stage.say("after: " + after.stream().map(context -> "succeeded " + context.isSuccess() + " code " + context.getContextCode()).sorted()
        .collect(Collectors.joining(", ")));
  }

  private static void ownTopic(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String traces = stage.topic(1);
    SendResult sent = traced(stage, stage.group(), traces).send(Stage.message(topic, "m"));
    stage.say(shown(traces(stage, traces, sent.getMsgId(), TraceType.Pub, 1).get(0)));
    MessageExt raw = stage.read(traces).get(0);
    stage.say("its keys hold the id: " + raw.getKeys().contains(sent.getMsgId()));
  }

  private static void foundById(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String traces = stage.topic(1);
    SendResult sent = traced(stage, stage.group(), traces).send(Stage.message(topic, "m"));
    Stage.until("it is found", () -> stage.refusal(() -> stage.clients.admin.queryMessage(traces, sent.getMsgId(), 32, 0, Long.MAX_VALUE))
        .equals("done"));
    stage.say("traces found by the id: " + stage.clients.admin.queryMessage(traces, sent.getMsgId(), 32, 0, Long.MAX_VALUE).getMessageList().size());
  }
}
