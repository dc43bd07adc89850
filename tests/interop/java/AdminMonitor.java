import java.lang.reflect.Field;
import java.util.TreeMap;
import org.apache.rocketmq.remoting.protocol.body.ConsumerRunningInfo;
import org.apache.rocketmq.tools.monitor.DeleteMsgsEvent;
import org.apache.rocketmq.tools.monitor.FailedMsgs;
import org.apache.rocketmq.tools.monitor.MonitorConfig;
import org.apache.rocketmq.tools.monitor.MonitorListener;
import org.apache.rocketmq.tools.monitor.MonitorService;
import org.apache.rocketmq.tools.monitor.UndoneMsgs;

/** What startMonitoring reports: one round at once, where the command waits for 20 seconds. */
final class AdminMonitor implements MonitorListener {
  private final StringBuilder out = new StringBuilder();

  private AdminMonitor() {}

  static String round() throws Exception {
    AdminMonitor listener = new AdminMonitor();
    MonitorService service = new MonitorService(new MonitorConfig(), listener, null);
    try {
      service.start();
      service.doMonitorWork();
    } finally {
      service.shutdown();
      Field schedule = MonitorService.class.getDeclaredField("scheduledExecutorService");
      schedule.setAccessible(true);
      ((java.util.concurrent.ExecutorService) schedule.get(service)).shutdownNow();
    }
    return listener.out.toString();
  }

  @Override
  public void beginRound() {
    out.append("begin\n");
  }

  @Override
  public void reportUndoneMsgs(UndoneMsgs undone) {
    out.append(String.format("undone %s %s total=%d single=%d delay=%d%n", undone.getConsumerGroup(),
        undone.getTopic(), undone.getUndoneMsgsTotal(), undone.getUndoneMsgsSingleMQ(),
        undone.getUndoneMsgsDelayTimeMills()));
  }

  @Override
  public void reportFailedMsgs(FailedMsgs failed) {
    out.append(String.format("failed %s%n", failed));
  }

  @Override
  public void reportDeleteMsgsEvent(DeleteMsgsEvent event) {
    out.append(String.format("deleted %s%n", event));
  }

  @Override
  public void reportConsumerRunningInfo(TreeMap<String, ConsumerRunningInfo> members) {
    members.forEach((client, info) -> out.append(String.format("running %s %s%n", client,
        info.getSubscriptionSet())));
  }

  @Override
  public void endRound() {
    out.append("end\n");
  }
}
