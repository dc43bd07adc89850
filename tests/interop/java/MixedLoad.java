import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Every kind of message at once: MixedLoad NAMESRV. Sends plain, delayed, transactional and ordered
 * messages, and such as are popped, to the topics of these names, each once (a failed send is not
 * repeated), and consumes them. Tells as JSON lines what was acknowledged and what was consumed. A line on standard input
 * ends the sending, its end all.
 */
final class MixedLoad implements TransactionListener {
  private static final int QUEUES = 4;
  private static final int DELAY_MS = 400;
  private static final int SEND_LIMIT_MS = 5_000;
  private static final int SOON_MS = 500;
  private static final int API_LIMIT_MS = 60_000; // a start fails when nobody answers in time
  private static final int PAUSE_MS = 20;
  private static final int POP_INVISIBLE_MS = 5_000; // the least that the client takes

  private final String namesrv;
  private final Set<String> executed = ConcurrentHashMap.newKeySet();
  private final Set<String> unheard = ConcurrentHashMap.newKeySet();
  private volatile boolean quiet;

  private MixedLoad(String namesrv) {
    this.namesrv = namesrv;
  }

  public static void main(String[] args) throws Exception {
    System.setOut(System.err); // what libraries print
    MixedLoad load = new MixedLoad(args[0]);
    for (String topic : List.of("plain", "delayed", "transactional")) {
      load.consumer(topic).start();
    }
    load.ordered().start();
    load.popping().start();
    DefaultMQProducer producer = load.prepared(new DefaultMQProducer("mixed"));
    TransactionMQProducer transactions = new TransactionMQProducer("mixed-transactions");
    transactions.setTransactionListener(load);
    load.prepared(transactions);
    load.spawn("plain", (message, number) -> producer.send(message));
    load.spawn("popped", (message, number) -> producer.send(message));
    load.spawn("delayed", (message, number) -> {
      message.setDelayTimeMs(DELAY_MS);
      return producer.send(message);
    });
    load.spawn("ordered", (message, number) -> producer.send(message,
        (queues, sent, wanted) -> queues.get(number % QUEUES), null));
    load.spawn("transactional", (message, number) -> {
      SendResult sent = transactions.sendMessageInTransaction(message, number);
      return load.executed.contains(new String(message.getBody(), StandardCharsets.UTF_8)) ? sent : null;
    });
    for (int read; (read = System.in.read()) >= 0; ) {
      load.quiet = load.quiet || read == '\n';
    }
    System.exit(0);
  }

  private interface Sender {
    SendResult send(Message message, int number) throws Exception;
  }

  private <P extends DefaultMQProducer> P prepared(P producer) throws Exception {
    producer.setNamesrvAddr(namesrv);
    producer.setInstanceName(producer.getProducerGroup());
    producer.setMqClientApiTimeout(API_LIMIT_MS);
    producer.setSendMsgTimeout(SEND_LIMIT_MS);
    producer.setRetryTimesWhenSendFailed(0);
    producer.setHeartbeatBrokerInterval(SOON_MS);
    producer.setPollNameServerInterval(SOON_MS);
    producer.start();
    return producer;
  }

  /** One send after the other. */
  private void spawn(String kind, Sender sender) {
    Thread thread = new Thread(() -> {
      for (int number = 0; !quiet; number++) {
        String key = kind + "-" + number;
        Wire.Json told = new Wire.Json().put("kind", kind).put("key", key);
        try {
          SendResult sent = sender.send(new Message(kind, key.getBytes(StandardCharsets.UTF_8)), number);
          boolean stored = sent != null && sent.getSendStatus() == SendStatus.SEND_OK;
          Wire.print(told.put("event", stored ? "sent" : "failed").put("wanted", wanted(number)));
        } catch (Exception e) {
          unheard.add(key);
          Wire.print(told.put("event", "failed").put("why", e.toString()));
        }
        pause();
      }
      Wire.print(new Wire.Json().put("event", "ended").put("kind", kind));
    }, kind);
    thread.setDaemon(true);
    thread.start();
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Whether that transaction shall be committed. */
  private static boolean wanted(int number) {
    return number % 4 != 1 && number % 4 != 3;
  }

  /** Says so at once of one half, and when it is asked of the other. */
  @Override
  public LocalTransactionState executeLocalTransaction(Message message, Object number) {
    executed.add(new String(message.getBody(), StandardCharsets.UTF_8));
    return (int) number % 4 < 2 ? state((int) number) : LocalTransactionState.UNKNOW;
  }

  /** A message whose sender did not hear that it was stored is nothing, one it waits for open. */
  @Override
  public LocalTransactionState checkLocalTransaction(MessageExt message) {
    String key = new String(message.getBody(), StandardCharsets.UTF_8);
    if (executed.contains(key)) {
      return state(Integer.parseInt(key.substring(key.indexOf('-') + 1)));
    }
    return unheard.contains(key) ? LocalTransactionState.ROLLBACK_MESSAGE
        : LocalTransactionState.UNKNOW;
  }

  private static LocalTransactionState state(int number) {
    return wanted(number) ? LocalTransactionState.COMMIT_MESSAGE
        : LocalTransactionState.ROLLBACK_MESSAGE;
  }

  private DefaultMQPushConsumer member(String topic) throws Exception {
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("mixed-" + topic);
    consumer.setNamesrvAddr(namesrv);
    consumer.setInstanceName("mixed-" + topic);
    consumer.setMqClientApiTimeout(API_LIMIT_MS);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setHeartbeatBrokerInterval(SOON_MS);
    consumer.setPollNameServerInterval(SOON_MS);
    consumer.setPersistConsumerOffsetInterval(SOON_MS);
    consumer.subscribe(topic, "*");
    return consumer;
  }

  /** Its listener sends one message of seven back when it first sees it. */
  private DefaultMQPushConsumer consumer(String topic) throws Exception {
    DefaultMQPushConsumer consumer = member(topic);
    consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
      boolean again = false;
      for (MessageExt message : messages) {
        boolean back = message.getReconsumeTimes() == 0 && message.getQueueOffset() % 7 == 3;
        tell(topic, message, back ? "back" : "consumed");
        again |= back;
      }
      context.setDelayLevelWhenNextConsume(1);
      return again ? ConsumeConcurrentlyStatus.RECONSUME_LATER
          : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    });
    return consumer;
  }

  /** The node spreads its queues; what it has in hand when that is killed comes again after its time. */
  private DefaultMQPushConsumer popping() throws Exception {
    DefaultMQPushConsumer consumer = consumer("popped");
    consumer.setClientRebalance(false);
    consumer.setPopInvisibleTime(POP_INVISIBLE_MS);
    return consumer;
  }

  private DefaultMQPushConsumer ordered() throws Exception {
    DefaultMQPushConsumer consumer = member("ordered");
    consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
      messages.forEach(message -> tell("ordered", message, "consumed"));
      return ConsumeOrderlyStatus.SUCCESS;
    });
    return consumer;
  }

  private static void tell(String kind, MessageExt message, String event) {
    Wire.print(new Wire.Json().put("event", event).put("kind", kind)
        .put("key", new String(message.getBody(), StandardCharsets.UTF_8))
        .put("queue", message.getQueueId()).put("offset", message.getQueueOffset())
        .put("times", message.getReconsumeTimes()));
  }
}
