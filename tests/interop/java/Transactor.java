import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A producer of transactions whose local transaction ends as it is told, and which answers checks
 * as it is told. Each check comes as an event.
 */
final class Transactor implements TransactionListener {
  private final String name;
  private final TransactionMQProducer producer;
  private final ConcurrentHashMap<String, LocalTransactionState> answers =
      new ConcurrentHashMap<>();

  Transactor(String name, String namesrv, String group) throws Exception {
    this.name = name;
    producer = new TransactionMQProducer(group);
    producer.setNamesrvAddr(namesrv);
    producer.setInstanceName(name);
    producer.setSendMsgTimeout(60_000);
    producer.setRetryTimesWhenSendFailed(0);
    producer.setHeartbeatBrokerInterval(500);
    producer.setPollNameServerInterval(1_000);
    producer.setTransactionListener(this);
    producer.start();
  }

  /** Sends a half message; its local transaction ends with `state`. */
  Wire.Json prepare(Message message, String state) throws Exception {
    // Once: a half message that is sent again is another one.
    RocketmqDriver.patiently(() -> producer.fetchPublishMessageQueues(message.getTopic()));
    TransactionSendResult sent = (TransactionSendResult)
        producer.sendMessageInTransaction(message, LocalTransactionState.valueOf(state));
    return new Wire.Json().put("status", sent.getSendStatus()).put("offset", sent.getQueueOffset())
        .put("partition", sent.getMessageQueue().getQueueId())
        .put("transactionId", sent.getTransactionId()).put("msgId", sent.getMsgId())
        .put("state", sent.getLocalTransactionState());
  }

  /** From now on checks about messages with this body are answered so; before that, not known. */
  void decide(String body, String state) {
    answers.put(body, LocalTransactionState.valueOf(state));
  }

  /** Goes without a word to those who might ask. */
  void close() {
    producer.shutdown();
  }

  @Override
  public LocalTransactionState executeLocalTransaction(Message message, Object state) {
    return (LocalTransactionState) state;
  }

  @Override
  public LocalTransactionState checkLocalTransaction(MessageExt message) {
    String body = Wire.hex(message.getBody());
    LocalTransactionState state = answers.getOrDefault(body, LocalTransactionState.UNKNOW);
    Wire.print(new Wire.Json().put("event", "checked").put("member", name).put("body", body)
        .put("times", message.getUserProperty("TRANSACTION_CHECK_TIMES")).put("state", state));
    return state;
  }
}
