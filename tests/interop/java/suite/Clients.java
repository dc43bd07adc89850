package suite;

import java.util.concurrent.CancellationException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.ServiceState;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * What the cases share: producers of three client instances, an administrator, and the instance of those that pull by
 * themselves. Consumers that are members of a group have their own: {@link Stage#push}.
 */
final class Clients {
  static final String[] INSTANCES = {"a", "b", "c"};
  static final String PULLING = "pulling";
  static final long TIMEOUT_MS = 60_000;

  final String namesrv;
  final DefaultMQProducer producer;
  final DefaultMQAdminExt admin;
  final String broker;
  private final String run = Long.toString(System.currentTimeMillis() % 100_000_000, 36);
  private final AtomicInteger names = new AtomicInteger();
  private final ScheduledExecutorService lookouts = Executors.newSingleThreadScheduledExecutor();

  Clients(String namesrv) throws Exception {
    this.namesrv = namesrv;
    DefaultMQProducer first = null;
    for (String instance : INSTANCES) {
      DefaultMQProducer producer = producer("suite_" + instance, instance);
      producer.start();
      first = first == null ? producer : first;
    }
    keepPulling();
    this.producer = first;
    admin = new DefaultMQAdminExt(TIMEOUT_MS);
    settle(admin, "admin");
    admin.start();
    broker = admin.examineBrokerClusterInfo().getBrokerAddrTable().values().iterator().next().selectBrokerAddr();
  }

  /** Stays, for the stock client stops an instance with the last one in it, also if another one just comes. */
  private void keepPulling() throws Exception {
    DefaultMQPullConsumer puller = new DefaultMQPullConsumer("suite_pulling");
    settle(puller, PULLING);
    puller.start();
  }

  /** A producer, not started yet, which compresses nothing. */
  DefaultMQProducer producer(String group, String instance) {
    DefaultMQProducer producer = new DefaultMQProducer(group);
    settle(producer, instance);
    producer.setSendMsgTimeout((int) TIMEOUT_MS);
    producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
    return producer;
  }

  void settle(ClientConfig client, String instance) {
    client.setNamesrvAddr(namesrv);
    client.setInstanceName("suite_" + instance);
    client.setMqClientApiTimeout((int) TIMEOUT_MS);
  }

  /** A name that nothing has yet, also not from another run. */
  String name(String kind) {
    return kind + run + "x" + names.incrementAndGet();
  }

  /** What all clients of the shared producer's instance know. */
  MQClientInstance shared() {
    return producer.getDefaultMQProducerImpl().getMqClientFactory();
  }

  /**
   * Has a consumer look for its topic of retries each second until it has it; by itself it looks every 30 s.
   */
  void findRetriesSoon(DefaultMQPushConsumer consumer, String group) {
    String retries = "%RETRY%" + group;
    var implementation = consumer.getDefaultMQPushConsumerImpl();
    lookouts.scheduleWithFixedDelay(() -> {
      if (implementation.getServiceState() != ServiceState.RUNNING || !ConsumeCases.queues(consumer, retries).isEmpty()) {
        throw new CancellationException("there is nothing left to look for");
      }
      implementation.getmQClientFactory().updateTopicRouteInfoFromNameServer(retries);
      implementation.getmQClientFactory().rebalanceImmediately();
    }, 1, 1, TimeUnit.SECONDS);
  }

  /** Requests as the client makes them inside. */
  MQClientAPIImpl api() {
    return shared().getMQClientAPIImpl();
  }
}
