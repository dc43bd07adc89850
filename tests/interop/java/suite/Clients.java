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
 * What the cases share: one producer, one administrator, and three client instances that their consumers belong to, as
 * several consumers of one application do. A member beside another one of its group is of another instance.
 */
final class Clients {
  static final String[] INSTANCES = {"a", "b", "c"};
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
      keepPulling(instance);
    }
    this.producer = first;
    admin = new DefaultMQAdminExt(TIMEOUT_MS);
    settle(admin, "admin");
    admin.start();
    broker = admin.examineBrokerClusterInfo().getBrokerAddrTable().values().iterator().next().selectBrokerAddr();
  }

  /**
   * The stock client stops an instance with the last of its members, also if another one is just about to join. A
   * started producer keeps the instance of push consumers; those that pull by themselves have a second one.
   */
  private void keepPulling(String instance) throws Exception {
    DefaultMQPullConsumer puller = new DefaultMQPullConsumer("suite_pulling_" + instance);
    settle(puller, instance);
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
