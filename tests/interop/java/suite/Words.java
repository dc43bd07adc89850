package suite;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.common.message.MessageExt;

/** How verdicts put what they saw. */
final class Words {
  /** What a pull adds, what differs on purpose, and what is another one each time. */
  private static final Set<String> LEFT_OUT =
      Set.of("MIN_OFFSET", "MAX_OFFSET", "MSG_REGION", "TRACE_ON", "CLUSTER", "UNIQ_KEY");

  private Words() {}

  static String bodies(List<? extends MessageExt> messages) {
    return messages.stream().map(Stage::text).collect(Collectors.joining(","));
  }

  static String sortedBodies(List<? extends MessageExt> messages) {
    return messages.stream().map(Stage::text).sorted().collect(Collectors.joining(","));
  }

  /** The properties but those that each message has. */
  static String properties(MessageExt message) {
    Map<String, String> properties = new TreeMap<>(message.getProperties());
    properties.keySet().removeAll(LEFT_OUT);
    return properties.toString();
  }

  static String names(MessageExt message, String... besides) {
    Map<String, String> properties = new TreeMap<>(message.getProperties());
    properties.keySet().removeAll(LEFT_OUT);
    properties.keySet().removeAll(Set.of(besides));
    return properties.keySet().toString();
  }
}
