package suite;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.remoting.protocol.header.EndTransactionRequestHeader;

/** Half messages: committed, rolled back, asked about. */
final class TransactionCases {
  private TransactionCases() {}

  static void all(Suite suite) {
    suite.quick("transaction.commit", TransactionCases::commit);
    suite.quick("transaction.rollback", TransactionCases::rollback);
    suite.quick("transaction.unknown-then-commit", stage -> unknown(stage, LocalTransactionState.COMMIT_MESSAGE));
    suite.slow("transaction.unknown-then-rollback", stage -> unknown(stage, LocalTransactionState.ROLLBACK_MESSAGE));
    suite.slow("transaction.unknown-thrice", TransactionCases::unknownThrice);
    suite.slow("transaction.never-known", TransactionCases::neverKnown);
    suite.slow("transaction.local-part-throws", TransactionCases::throwing);
    suite.slow("transaction.local-part-is-null", TransactionCases::nothing);
    suite.slow("transaction.check-throws", TransactionCases::checkThrows);
    suite.slow("transaction.immunity", TransactionCases::immunity);
    suite.quick("transaction.hidden-until-the-commit", TransactionCases::hidden);
    suite.quick("transaction.no-gaps", TransactionCases::noGaps);
    suite.quick("transaction.what-it-looks-like", TransactionCases::looks);
    suite.slow("transaction.consumed-by-tag", TransactionCases::byTag);
    suite.slow("transaction.with-a-delay", TransactionCases::delayed);
    suite.slow("transaction.to-a-new-topic", TransactionCases::newTopic);
    suite.slow("transaction.sender-dead-another-lives", TransactionCases::senderDead);
    suite.slow("transaction.all-dead-then-one-starts", TransactionCases::allDead);
    suite.slow("transaction.end-of-nothing", TransactionCases::endOfNothing);
  }

  /** A producer whose answers a case decides, by the messages' bodies. */
  static final class Decider implements TransactionListener {
    final Map<String, LocalTransactionState> answers = new ConcurrentHashMap<>();
    final List<String> asked = new ArrayList<>();
    final List<Long> times = new ArrayList<>();
    Runnable local = () -> {};

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
      local.run();
      return (LocalTransactionState) argument;
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
      synchronized (this) {
        asked.add(Stage.text(message));
        times.add(System.currentTimeMillis());
      }
      return answers.getOrDefault(Stage.text(message), LocalTransactionState.UNKNOW);
    }

    synchronized long count(String body) {
      return asked.stream().filter(body::equals).count();
    }
  }

  static TransactionMQProducer producer(Stage stage, String group, String instance, TransactionListener listener)
      throws Exception {
    TransactionMQProducer producer = new TransactionMQProducer(group);
    stage.clients.settle(producer, instance);
    producer.setSendMsgTimeout((int) Clients.TIMEOUT_MS);
    producer.setTransactionListener(listener);
    producer.start();
    stage.closing(producer::shutdown);
    return producer;
  }

  private static TransactionSendResult prepare(TransactionMQProducer producer, String topic, String body,
      LocalTransactionState state) throws Exception {
    return producer.sendMessageInTransaction(Stage.message(topic, body), state);
  }

  private static final LocalTransactionState COMMIT = LocalTransactionState.COMMIT_MESSAGE;
  private static final LocalTransactionState ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE;
  private static final LocalTransactionState UNKNOWN = LocalTransactionState.UNKNOW;

  private static void commit(Stage stage) throws Exception {
    String topic = stage.topic(1);
    TransactionSendResult sent = prepare(producer(stage, stage.group(), "a", new Decider()), topic, "m", COMMIT);
    stage.say(sent.getSendStatus() + " " + sent.getLocalTransactionState());
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)));
    stage.say("its id names the transaction: " + sent.getMsgId().equals(sent.getTransactionId()));
  }

  private static void rollback(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Decider decider = new Decider();
    TransactionMQProducer producer = producer(stage, stage.group(), "a", decider);
    TransactionSendResult sent = prepare(producer, topic, "gone", ROLLBACK);
    stage.say(sent.getSendStatus() + " " + sent.getLocalTransactionState());
    prepare(producer, topic, "later", COMMIT);
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)));
  }

  private static void unknown(Stage stage, LocalTransactionState answer) throws Exception {
    String topic = stage.topic(1);
    Decider decider = new Decider();
    decider.answers.put("m", answer);
    decider.answers.put("last", COMMIT);
    TransactionMQProducer producer = producer(stage, stage.group(), "a", decider);
    stage.say(prepare(producer, topic, "m", UNKNOWN).getLocalTransactionState());
    Stage.until("it is asked", () -> decider.count("m") > 0);
    prepare(producer, topic, "last", UNKNOWN);
    Stage.until("the last arrives", () -> Words.bodies(stage.read(topic)).contains("last"));
    stage.say("read " + Words.bodies(stage.read(topic)) + ", asked about it: " + (decider.count("m") > 0));
  }

  private static void unknownThrice(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Decider decider = new Decider();
    TransactionMQProducer producer = producer(stage, stage.group(), "a", decider);
    prepare(producer, topic, "m", UNKNOWN);
    Stage.until("it is asked twice", () -> decider.count("m") == 2);
    decider.answers.put("m", COMMIT);
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)) + ", asked again after two answers: " + (decider.count("m") > 2));
  }

  private static void neverKnown(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Decider decider = new Decider();
    TransactionMQProducer producer = producer(stage, stage.group(), "a", decider);
    TransactionSendResult sent = prepare(producer, topic, "m", UNKNOWN);
    String discarded = "TRANS_CHECK_MAX_TIME_TOPIC";
    Stage.until("it is given up", () -> stage.clients.admin.queryMessageByUniqKey("DefaultCluster", discarded, sent.getMsgId(), 10, 0,
        Long.MAX_VALUE).getMessageList().size() > 0);
    Stage.until("its producer has heard of every round", () -> decider.count("m") >= 4);
    stage.say("asked " + decider.count("m") + " times, then given up");
    MessageExt kept = stage.clients.admin.queryMessageByUniqKey("DefaultCluster", discarded, sent.getMsgId(), 10, 0, Long.MAX_VALUE)
        .getMessageList().get(0);
    stage.say("kept " + Stage.text(kept) + ", of " + kept.getProperty("REAL_TOPIC"));
    stage.say("end of its queue " + stage.clients.admin.maxOffset(stage.queue(topic, 0)));
  }

  private static void throwing(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Decider decider = new Decider();
    decider.answers.put("m", COMMIT);
    decider.local = () -> {
      throw new IllegalStateException("on purpose");
    };
    TransactionMQProducer producer = producer(stage, stage.group(), "a", decider);
    stage.say(prepare(producer, topic, "m", COMMIT).getLocalTransactionState());
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)) + ", asked: " + (decider.count("m") > 0));
  }

  private static void nothing(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Decider decider = new Decider();
    decider.answers.put("m", COMMIT);
    TransactionMQProducer producer = producer(stage, stage.group(), "a", decider);
    stage.say(prepare(producer, topic, "m", null).getLocalTransactionState());
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)) + ", asked: " + (decider.count("m") > 0));
  }

  private static void checkThrows(Stage stage) throws Exception {
    String topic = stage.topic(1);
    List<String> asked = new ArrayList<>();
    TransactionMQProducer producer = producer(stage, stage.group(), "a", new TransactionListener() {
      @Override
      public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
        return UNKNOWN;
      }

      @Override
      public synchronized LocalTransactionState checkLocalTransaction(MessageExt message) {
        asked.add(Stage.text(message));
        if (asked.size() == 1) {
          throw new IllegalStateException("on purpose");
        }
        return COMMIT;
      }
    });
    prepare(producer, topic, "m", UNKNOWN);
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)) + ", asked again: " + (asked.size() > 1));
  }

  private static void immunity(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Decider decider = new Decider();
    decider.answers.put("m", COMMIT);
    TransactionMQProducer producer = producer(stage, stage.group(), "a", decider);
    Message message = Stage.message(topic, "m");
    message.putUserProperty("CHECK_IMMUNITY_TIME_IN_SECONDS", "5");
    long sent = System.currentTimeMillis();
    producer.sendMessageInTransaction(message, UNKNOWN);
    stage.awaitEnd(topic, 0, 1);
    stage.say("asked after 4 s at least: " + (decider.times.get(0) - sent >= 4000));
    stage.say("read " + Words.bodies(stage.read(topic)) + " " + Words.names(stage.read(topic).get(0), "TRANSACTION_CHECK_TIMES",
        "TRAN_PREPARED_QUEUE_OFFSET"));
  }

  private static void hidden(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Decider decider = new Decider();
    List<String> within = new ArrayList<>();
    decider.local = () -> {
      try {
        within.add("end " + stage.clients.admin.maxOffset(stage.queue(topic, 0)) + ", read " + Words.bodies(stage.read(topic)));
      } catch (Exception thrown) {
        within.add(thrown.toString());
      }
    };
    stage.send(topic, "before");
    prepare(producer(stage, stage.group(), "a", decider), topic, "m", COMMIT);
    stage.say("while it is open: " + within);
    stage.awaitEnd(topic, 0, 2);
    stage.say("then " + Words.bodies(stage.read(topic)));
  }

  private static void noGaps(Stage stage) throws Exception {
    String topic = stage.topic(1);
    TransactionMQProducer producer = producer(stage, stage.group(), "a", new Decider());
    for (int number = 0; number < 6; number++) {
      prepare(producer, topic, "m" + number, number % 2 == 0 ? COMMIT : ROLLBACK);
      stage.awaitEnd(topic, 0, number / 2 * 2 + 1 - number / 2);
    }
    stage.awaitEnd(topic, 0, 3);
    for (MessageExt message : stage.read(topic)) {
      stage.say(Stage.text(message) + " at " + message.getQueueOffset());
    }
  }

  private static void looks(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Message message = Stage.tagged(topic, "tag", "m");
    message.setKeys("key");
    message.setFlag(6);
    message.putUserProperty("user", "value");
    TransactionSendResult sent = producer(stage, group, "a", new Decider()).sendMessageInTransaction(message, COMMIT);
    stage.awaitEnd(topic, 0, 1);
    MessageExt seen = stage.read(topic).get(0);
    stage.say("flag " + seen.getFlag() + ", system flag " + seen.getSysFlag() + ", type "
        + MessageSysFlag.getTransactionValue(seen.getSysFlag()) + ", reconsumed " + seen.getReconsumeTimes());
    stage.say(Words.properties(seen).replace(sent.getMsgId(), "ID").replaceAll("TRAN_PREPARED_QUEUE_OFFSET=[0-9]+, |TRANSACTION_CHECK_TIMES=[0-9]+, ", ""));
    stage.say("id of the answer: " + sent.getMsgId().equals(seen.getMsgId()) + ", transaction: " + sent.getTransactionId().equals(seen.getTransactionId()));
  }

  private static void byTag(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Deliveries deliveries = new Deliveries();
    DefaultMQPushConsumer consumer = stage.push(stage.group(), "b");
    consumer.subscribe(topic, "A");
    consumer.registerMessageListener(deliveries.taking());
    consumer.start();
    TransactionMQProducer producer = producer(stage, stage.group(), "a", new Decider());
    for (String[] one : new String[][] {{"B", "no"}, {"A", "yes"}, {"A", "rolled back"}, {"A", "last"}}) {
      producer.sendMessageInTransaction(Stage.tagged(topic, one[0], one[1]), one[1].equals("rolled back") ? ROLLBACK : COMMIT);
    }
    deliveries.await(2);
    stage.say(deliveries.sorted());
  }

  private static void delayed(Stage stage) throws Exception {
    String topic = stage.topic(1);
    TransactionMQProducer producer = producer(stage, stage.group(), "a", new Decider());
    Message message = Stage.message(topic, "m");
    message.setDelayTimeLevel(4);
    stage.sayRefusal("a level", () -> producer.sendMessageInTransaction(message, COMMIT));
    Message timed = Stage.message(topic, "m");
    timed.setDelayTimeMs(1000);
    stage.sayRefusal("a time", () -> producer.sendMessageInTransaction(timed, COMMIT));
    stage.send(topic, "after");
    stage.say("read " + Words.bodies(stage.read(topic)));
  }

  private static void newTopic(Stage stage) throws Exception {
    String topic = stage.topicName();
    TransactionSendResult sent = prepare(producer(stage, stage.group(), "a", new Decider()), topic, "m", COMMIT);
    stage.say(sent.getSendStatus());
    Stage.until("it is there", () -> stage.clients.admin.examineTopicStats(topic).getOffsetTable().values().stream()
        .anyMatch(queue -> queue.getMaxOffset() == 1));
    stage.say("queues " + stage.clients.admin.examineTopicRouteInfo(topic).getQueueDatas().get(0).getWriteQueueNums());
  }

  private static void senderDead(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    Decider heir = new Decider();
    heir.answers.put("m", COMMIT);
    producer(stage, group, "b", heir);
    TransactionMQProducer sender = new TransactionMQProducer(group);
    stage.clients.settle(sender, "dying_" + group);
    sender.setTransactionListener(new Decider());
    sender.start();
    prepare(sender, topic, "m", UNKNOWN);
    sender.shutdown();
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)) + ", the other one was asked: " + (heir.count("m") > 0));
  }

  private static void allDead(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String group = stage.group();
    TransactionMQProducer sender = new TransactionMQProducer(group);
    stage.clients.settle(sender, "dying_" + group);
    sender.setTransactionListener(new Decider());
    sender.start();
    prepare(sender, topic, "m", UNKNOWN);
    sender.shutdown();
    Decider heir = new Decider();
    heir.answers.put("m", COMMIT);
    producer(stage, group, "b", heir);
    stage.awaitEnd(topic, 0, 1);
    stage.say("read " + Words.bodies(stage.read(topic)) + ", the new one was asked: " + (heir.count("m") > 0));
  }

  private static void endOfNothing(Stage stage) throws Exception {
    String topic = stage.topic(1);
    EndTransactionRequestHeader header = new EndTransactionRequestHeader();
    header.setTopic(topic);
    header.setProducerGroup(stage.group());
    header.setTranStateTableOffset(12_345_678L);
    header.setCommitLogOffset(1_234_567_890L);
    header.setCommitOrRollback(MessageSysFlag.TRANSACTION_COMMIT_TYPE);
    header.setMsgId("nobody");
    header.setTransactionId("nobody");
    stage.clients.api().endTransactionOneway(stage.clients.broker, header, "", Clients.TIMEOUT_MS);
    stage.send(topic, "after");
    stage.say("read " + Words.bodies(stage.read(topic)));
  }
}
