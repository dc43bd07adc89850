import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * The stock Java client of RocketMQ under command: RocketmqDriver NAMESRV, commands on standard
 * input (see Wire). With - for the name server producers and members find one as a client does that
 * was told none.
 */
final class RocketmqDriver {
  /** Requests that wait for a reply, and replies; clients have them from 4.6.0 on. */
  interface Rpc {
    Message request(DefaultMQProducer producer, Message message, long timeoutMillis)
        throws Exception;

    Message reply(MessageExt request, byte[] body) throws Exception;
  }

  /** The max offset of a queue as the broker answers it. */
  interface MaxOffset {
    long of(MessageQueue queue) throws Exception;
  }

  private static final int NEVER = Integer.MAX_VALUE;
  private static final int HOLD_MS = 300_000;

  private final String namesrv;
  private final Map<String, DefaultMQProducer> producers = new HashMap<>();
  private final Map<String, List<CompletableFuture<SendResult>>> sends = new HashMap<>();
  private final Map<String, List<Message>> batches = new HashMap<>();
  private final Map<String, DefaultMQPushConsumer> members = new HashMap<>();
  private final Map<String, Puller> pullers = new HashMap<>();
  private final Map<String, Follower> followers = new HashMap<>();
  private final Map<String, Transactor> transactors = new HashMap<>();
  private DefaultMQPullConsumer pull;

  private RocketmqDriver(String namesrv) {
    this.namesrv = namesrv;
  }

  public static void main(String[] args) throws Exception {
    RocketmqDriver driver = new RocketmqDriver(args[0]);
    Wire.serve(driver::handle);
    System.exit(0);
  }

  private void handle(String verb, Wire.Args args) throws Exception {
    switch (verb) {
      case "producer": producer(args); break;
      case "send": send(args); break;
      case "flush": flush(args.need("id")); break;
      case "recall": recall(args); break;
      case "close": producers.remove(args.need("id")).shutdown(); break;
      case "await": await(args); break;
      case "read": read(args); break;
      case "join": join(args); break;
      case "assignment":
        Wire.print(new Wire.Json().put("partitions", assigned(members.get(args.need("name")))));
        break;
      case "follow": follow(args); break;
      case "pop":
        members.put(args.need("name"), (DefaultMQPushConsumer) Class.forName("PopMember")
            .getDeclaredMethod("join", String.class, Wire.Args.class).invoke(null, namesrv, args));
        break;
      case "release":
        Class.forName("PopMember").getDeclaredMethod("release", String.class)
            .invoke(null, args.need("name"));
        break;
      case "leave": leave(args.need("name")); break;
      case "hold": hold(args); break;
      case "request": request(args); break;
      case "transactor": transactor(args); break;
      case "prepare": prepare(args); break;
      case "decide":
        transactors.get(args.need("id")).decide(args.need("body"), args.need("state"));
        break;
      case "retire": transactors.remove(args.need("id")).close(); break;
      default: throw new IllegalArgumentException("no such command: " + verb);
    }
  }

  /**
   * producer id= [compression=none|zlib|lz4|zstd] [trace=true] [unit=]: clients without the choice
   * know zlib only.
   */
  private void producer(Wire.Args args) throws Exception {
    String id = args.need("id");
    String compression = args.or("compression", "none");
    if (!compression.equals("none")) {
      System.setProperty("rocketmq.message.compressType", compression.toUpperCase());
    }
    DefaultMQProducer producer =
        new DefaultMQProducer("producer_" + id, null, args.or("trace", "false").equals("true"), null);
    place(producer, args, id);
    producer.setSendMsgTimeout(60_000);
    if (compression.equals("none")) {
      producer.setCompressMsgBodyOverHowmuch(NEVER);
    }
    producer.start();
    producers.put(id, producer);
    sends.put(id, new ArrayList<>());
    batches.put(id, new ArrayList<>());
  }

  private void place(ClientConfig client, Wire.Args args, String instance) {
    if (!namesrv.equals("-")) {
      client.setNamesrvAddr(namesrv);
    }
    if (!args.or("unit", "").isEmpty()) {
      client.setUnitName(args.need("unit"));
    }
    client.setInstanceName(instance);
  }

  private static Rpc rpc() throws Exception {
    return (Rpc) Class.forName("Rpcs").getDeclaredConstructor().newInstance();
  }

  /** request id= topic= body=hex [timeout=ms]: one line, the reply. */
  private void request(Wire.Args args) throws Exception {
    Message message = new Message(args.need("topic"), args.bytes("body"));
    DefaultMQProducer producer = producers.get(args.need("id"));
    Message reply = rpc().request(producer, message, args.number("timeout", 120_000));
    Wire.print(new Wire.Json().put("topic", reply.getTopic()).put("body", Wire.hex(reply.getBody()))
        .put("properties", new TreeMap<>(reply.getProperties())));
  }

  /**
   * send id= topic= [queue=] [mode=sync|async|oneway|batch] body=hex [tags=] [keys=hex] [flag=]
   * [p=hexname:hex]... [reserved=hexname:hex]...: the client's own properties, such as DELAY, are
   * reserved.
   */
  private void send(Wire.Args args) {
    String id = args.need("id");
    DefaultMQProducer producer = producers.get(id);
    CompletableFuture<SendResult> result = new CompletableFuture<>();
    String mode = args.or("mode", "sync");
    try {
      Message message = message(args);
      if (mode.equals("batch")) {
        batches.get(id).add(message);
        return; // sent by `flush`
      }
      MessageQueue queue = queue(producer, args.need("topic"), args.or("queue", null));
      switch (mode) {
        case "sync":
          result.complete(queue == null ? producer.send(message)
              : producer.send(message, (all, sent, wanted) -> all.get(all.indexOf(wanted)), queue));
          break;
        case "async":
          producer.send(message, queue, new SendCallback() {
            @Override
            public void onSuccess(SendResult sent) {
              result.complete(sent);
            }

            @Override
            public void onException(Throwable e) {
              result.completeExceptionally(e);
            }
          });
          result.get();
          break;
        case "oneway":
          producer.sendOneway(message, queue);
          return;
        default: throw new IllegalArgumentException("no such mode: " + mode);
      }
    } catch (Exception e) {
      result.completeExceptionally(e);
    }
    sends.get(id).add(result);
  }

  private static Message message(Wire.Args args) {
    Message message = new Message(args.need("topic"), args.bytes("body"));
    if (args.or("tags", null) != null) {
      message.setTags(args.need("tags"));
    }
    if (args.or("keys", null) != null) {
      message.setKeys(Wire.text(args.need("keys")));
    }
    message.setFlag(args.number("flag", 0));
    for (String pair : args.all("p")) {
      String[] parts = pair.split(":", -1);
      message.putUserProperty(Wire.text(parts[0]), Wire.text(parts[1]));
    }
    for (String pair : args.all("reserved")) {
      String[] parts = pair.split(":", -1);
      MessageAccessor.putProperty(message, Wire.text(parts[0]), Wire.text(parts[1]));
    }
    return message;
  }

  /** As applications do: once more while nobody has answered in the few seconds that clients wait. */
  static <T> T patiently(Callable<T> call) throws Exception {
    long deadline = System.nanoTime() + 120_000_000_000L;
    while (true) {
      try {
        return call.call();
      } catch (MQClientException e) {
        if (System.nanoTime() > deadline) {
          throw e;
        }
        Thread.sleep(100);
      }
    }
  }

  private static MessageQueue queue(DefaultMQProducer producer, String topic, String queueId)
      throws Exception {
    if (queueId == null) {
      return null;
    }
    for (MessageQueue queue : patiently(() -> producer.fetchPublishMessageQueues(topic))) {
      if (queue.getQueueId() == Integer.parseInt(queueId)) {
        return queue;
      }
    }
    throw new IllegalArgumentException(topic + " has no queue " + queueId);
  }

  /**
   * flush id=: sends the waiting batch to queue 0; one line for each answered send since the last
   * flush, in the order of the sends, the batch last. A oneway send has no line.
   */
  private void flush(String id) throws Exception {
    List<Message> batch = batches.put(id, new ArrayList<>());
    if (!batch.isEmpty()) {
      MessageQueue queue = queue(producers.get(id), batch.get(0).getTopic(), "0");
      sends.get(id).add(CompletableFuture.completedFuture(producers.get(id).send(batch, queue)));
    }
    for (CompletableFuture<SendResult> sent : sends.put(id, new ArrayList<>())) {
      Wire.Json line = new Wire.Json();
      try {
        SendResult at = sent.get();
        line.put("partition", at.getMessageQueue().getQueueId()).put("offset", at.getQueueOffset())
            .put("status", at.getSendStatus()).put("msgId", at.getMsgId())
            .put("offsetMsgId", at.getOffsetMsgId()).put("recallHandle", recallHandle(at));
      } catch (java.util.concurrent.ExecutionException e) {
        line.put("failed", e.getCause().toString());
      }
      Wire.print(line);
    }
  }

  /** What clients from 5.4 on are given to take a message back with. */
  private static String recallHandle(SendResult sent) {
    try {
      return (String) SendResult.class.getMethod("getRecallHandle").invoke(sent);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /** recall id= topic= handle=: the id that the broker answers. */
  private void recall(Wire.Args args) throws Exception {
    Object id = DefaultMQProducer.class.getMethod("recallMessage", String.class, String.class)
        .invoke(producers.get(args.need("id")), args.need("topic"), args.need("handle"));
    Wire.print(new Wire.Json().put("id", id));
  }

  /**
   * read topic= [via=pull|lite] [timeout=ms]: every message below the max offsets of now, queue by
   * queue.
   */
  private void read(Wire.Args args) throws Exception {
    long deadline = System.nanoTime() + args.number("timeout", 120_000) * 1_000_000L;
    Puller puller = puller(args.or("via", "pull"));
    for (MessageQueue queue : puller.queues(args.need("topic"))) {
      puller.read(queue, deadline, message -> Wire.print(json(message)));
    }
  }

  /**
   * await topic= queue= end= [timeout=ms]: until the max offset of the queue is that, as after
   * oneway sends.
   */
  private void await(Wire.Args args) throws Exception {
    long deadline = System.nanoTime() + args.number("timeout", 120_000) * 1_000_000L;
    int queueId = args.number("queue", 0);
    int end = args.number("end", 0);
    DefaultMQPullConsumer pull = pull();
    String topic = args.need("topic");
    for (MessageQueue queue : patiently(() -> pull.fetchSubscribeMessageQueues(topic))) {
      while (queue.getQueueId() == queueId && patiently(() -> pull.maxOffset(queue)) != end) {
        if (System.nanoTime() > deadline) {
          throw new IllegalStateException(queue + " ends at " + pull.maxOffset(queue));
        }
        Thread.sleep(5);
      }
    }
  }

  private DefaultMQPullConsumer pull() throws Exception {
    if (pull == null) {
      pull = new DefaultMQPullConsumer("pull_reader");
      pull.setNamesrvAddr(namesrv);
      pull.setInstanceName("pull");
      pull.start();
    }
    return pull;
  }

  private Puller puller(String via) throws Exception {
    if (!pullers.containsKey(via)) {
      DefaultMQPullConsumer pull = pull();
      MaxOffset maxOffset = queue -> patiently(() -> pull.maxOffset(queue));
      pullers.put(via, via.equals("pull") ? new QueuePuller(pull)
          : (Puller) Class.forName("LitePuller")
              .getDeclaredConstructor(String.class, MaxOffset.class)
              .newInstance(namesrv, maxOffset));
    }
    return pullers.get(via);
  }

  /** The pull consumer that every version has. */
  private static final class QueuePuller implements Puller {
    private final DefaultMQPullConsumer consumer;

    QueuePuller(DefaultMQPullConsumer consumer) {
      this.consumer = consumer;
    }

    @Override
    public Iterable<MessageQueue> queues(String topic) throws Exception {
      return patiently(() -> consumer.fetchSubscribeMessageQueues(topic));
    }

    @Override
    public void read(MessageQueue queue, long deadlineNanos, Sink sink) throws Exception {
      long end = patiently(() -> consumer.maxOffset(queue));
      for (long next = patiently(() -> consumer.minOffset(queue)); next < end; ) {
        PullResult result = consumer.pull(queue, "*", next, 32);
        if (result.getPullStatus() == PullStatus.FOUND) {
          result.getMsgFoundList().forEach(sink::take);
        } else if (result.getPullStatus() == PullStatus.OFFSET_ILLEGAL
            || result.getNextBeginOffset() <= next || System.nanoTime() > deadlineNanos) {
          throw new IllegalStateException(queue + ": " + result + " at " + next + " of " + end);
        }
        next = result.getNextBeginOffset();
      }
    }
  }

  /**
   * join name= group= topic= [tags=*|sql=HEX] [strategy=AVG|CIRCLE] [from=FIRST|LAST] [trace=true]
   * [model=broadcast] [unit=] [reply=PRODUCER] [fail=] [max=]: messages come as events; each is answered with its own body if so
   * wished. The listener fails with messages that came back less than fail= times; max= is the
   * client's maxReconsumeTimes.
   */
  private void join(Wire.Args args) throws Exception {
    String name = args.need("name");
    AllocateMessageQueueStrategy strategy = args.or("strategy", "AVG").equals("CIRCLE")
        ? new AllocateMessageQueueAveragelyByCircle() : new AllocateMessageQueueAveragely();
    DefaultMQPushConsumer consumer = args.or("trace", "false").equals("true")
        ? new DefaultMQPushConsumer(args.need("group"), null, strategy, true, null)
        : new DefaultMQPushConsumer(args.need("group"), null, strategy);
    DefaultMQProducer replier = producers.get(args.or("reply", ""));
    place(consumer, args, name);
    if (args.or("model", "").equals("broadcast")) {
      broadcast(consumer);
    }
    consumer.setConsumeFromWhere(args.or("from", "FIRST").equals("FIRST")
        ? ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET : ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
    consumer.setHeartbeatBrokerInterval(args.number("heartbeat", 1_000));
    consumer.setPollNameServerInterval(args.number("route", 1_000));
    consumer.setPersistConsumerOffsetInterval(args.number("persist", 500));
    consumer.setMaxReconsumeTimes(args.number("max", -1));
    int fail = args.number("fail", 0);
    String sql = args.or("sql", "");
    if (sql.isEmpty()) {
      consumer.subscribe(args.need("topic"), args.or("tags", "*"));
    } else {
      consumer.subscribe(args.need("topic"), MessageSelector.bySql(Wire.text(sql)));
    }
    consumer.registerMessageListener(new MessageListenerConcurrently() {
      @Override
      public ConsumeConcurrentlyStatus consumeMessage(
          List<MessageExt> found, ConsumeConcurrentlyContext context) {
        for (MessageExt message : found) {
          Wire.print(json(message).put("event", "record").put("member", name));
          if (replier != null) {
            reply(replier, message);
          }
        }
        return found.stream().anyMatch(message -> message.getReconsumeTimes() < fail)
            ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
      }
    });
    consumer.start();
    members.put(name, consumer);
  }

  /** The model's class has another package in each generation of clients. */
  @SuppressWarnings({"unchecked", "rawtypes"})
  private static void broadcast(DefaultMQPushConsumer consumer) throws Exception {
    Method set = Arrays.stream(DefaultMQPushConsumer.class.getMethods())
        .filter(method -> method.getName().equals("setMessageModel")).findFirst().get();
    set.invoke(consumer, Enum.valueOf((Class) set.getParameterTypes()[0], "BROADCASTING"));
  }

  /** follow name= group= topic= via=pull|lite: as `join`, by a consumer that asks itself. */
  private void follow(Wire.Args args) throws Exception {
    String kind = args.need("via").equals("pull") ? "QueueFollower" : "LiteFollower";
    Follower follower = (Follower) Class.forName(kind)
        .getDeclaredConstructor(String.class, String.class, String.class, String.class)
        .newInstance(args.need("name"), namesrv, args.need("group"), args.need("topic"));
    followers.put(args.need("name"), follower);
    follower.start();
  }

  /** leave name=: a member that `join` or `follow` made stores its positions and goes. */
  private void leave(String name) throws Exception {
    if (followers.containsKey(name)) {
      followers.remove(name).leave();
    } else {
      members.remove(name).shutdown();
    }
  }

  /** transactor id= group=: a producer of transactions (`retire` ends it). */
  private void transactor(Wire.Args args) throws Exception {
    String id = args.need("id");
    transactors.put(id, new Transactor(id, namesrv, args.need("group")));
  }

  /**
   * prepare id= topic= body=hex state=: a half message whose local transaction ends in that state;
   * how it was stored, or why not.
   */
  private void prepare(Wire.Args args) throws Exception {
    try {
      Wire.print(transactors.get(args.need("id")).prepare(message(args), args.need("state")));
    } catch (MQClientException e) {
      Wire.print(new Wire.Json().put("failed", e.toString()));
    }
  }

  /**
   * hold name= topic= queue= offset=: one pull, held by the broker for five minutes at most. How it
   * ended comes as an event.
   */
  private void hold(Wire.Args args) throws Exception {
    String name = args.need("name");
    String topic = args.need("topic");
    DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("holder_" + name);
    consumer.setNamesrvAddr(namesrv);
    consumer.setInstanceName(name);
    consumer.setBrokerSuspendMaxTimeMillis(HOLD_MS);
    consumer.setConsumerTimeoutMillisWhenSuspend(HOLD_MS + 60_000);
    consumer.start();
    MessageQueue queue = patiently(() -> consumer.fetchSubscribeMessageQueues(topic)).stream()
        .filter(q -> q.getQueueId() == args.number("queue", 0)).findFirst().get();
    new Thread(() -> {
      Wire.Json event = new Wire.Json().put("event", "pulled").put("member", name);
      try {
        PullResult result =
            consumer.pullBlockIfNotFound(queue, "*", args.number("offset", 0), 32);
        event.put("status", result.getPullStatus()).put("next", result.getNextBeginOffset());
      } catch (Exception e) {
        event.put("status", e.toString());
      }
      Wire.print(event);
      consumer.shutdown();
    }, name).start();
  }

  private static void reply(DefaultMQProducer replier, MessageExt request) {
    Wire.Json line = new Wire.Json().put("event", "reply");
    try {
      SendResult sent = replier.send(rpc().reply(request, request.getBody()), 60_000);
      Wire.print(line.put("status", sent.getSendStatus()).put("offset", sent.getQueueOffset()));
    } catch (Exception e) {
      Wire.print(line.put("failed", e.toString()));
    }
  }

  private static List<String> assigned(DefaultMQPushConsumer consumer) {
    return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable()
        .keySet().stream().filter(queue -> !queue.getTopic().startsWith("%RETRY%")).sorted()
        .map(queue -> queue.getTopic() + "-" + queue.getQueueId()).collect(Collectors.toList());
  }

  static Wire.Json json(MessageExt message) {
    return new Wire.Json().put("topic", message.getTopic()).put("partition", message.getQueueId())
        .put("offset", message.getQueueOffset()).put("value", Wire.hex(message.getBody()))
        .put("tags", message.getTags()).put("keys", message.getKeys())
        .put("properties", new TreeMap<>(message.getProperties()))
        .put("flag", message.getFlag()).put("sysFlag", message.getSysFlag())
        .put("reconsumeTimes", message.getReconsumeTimes()).put("msgId", message.getMsgId())
        .put("bornTimestamp", message.getBornTimestamp())
        .put("storeTimestamp", message.getStoreTimestamp())
        .put("bornHost", message.getBornHost()).put("storeHost", message.getStoreHost());
  }
}
