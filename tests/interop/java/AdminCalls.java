import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Calls of DefaultMQAdminExt, named and with arguments as text. */
final class AdminCalls {
  private AdminCalls() {}

  /**
   * The method of that name that takes so many arguments of such kinds: numbers and truth values as they are,
   * `topic/broker/queue` for a queue, `topic/id` for a message, `a,b` for a set or list, `k=v,k=v` for properties,
   * a name for the configuration of a topic or group. A ~ is null.
   */
  static Object call(DefaultMQAdminExt admin, String name, List<String> texts) throws Exception {
    for (Method method : methods()) {
      if (!method.getName().equals(name) || method.getParameterCount() != texts.size()) {
        continue;
      }
      List<Object> arguments = new ArrayList<>();
      for (int i = 0; i < texts.size(); i++) {
        arguments.add(argument(admin, method.getParameterTypes()[i], texts.get(i)));
      }
      if (!arguments.contains(UNFIT)) {
        return method.invoke(admin, arguments.toArray());
      }
    }
    throw new IllegalArgumentException("no " + name + " of " + texts);
  }

  private static final Object UNFIT = new Object();

  private static List<Method> methods() {
    List<Method> methods = new ArrayList<>(Arrays.asList(DefaultMQAdminExt.class.getMethods()));
    methods.sort((a, b) -> a.toString().compareTo(b.toString()));
    return methods;
  }

  private static Object argument(DefaultMQAdminExt admin, Class<?> type, String text) throws Exception {
    if (text.equals("~") && !type.isPrimitive()) {
      return null;
    }
    boolean number = text.matches("-?[0-9]+");
    if (type == String.class) {
      return text;
    } else if (type == long.class || type == Long.class) {
      return number ? Long.valueOf(text) : UNFIT;
    } else if (type == int.class || type == Integer.class) {
      return number ? Integer.valueOf(text) : UNFIT;
    } else if (type == boolean.class) {
      return text.equals("true") || text.equals("false") ? Boolean.valueOf(text) : UNFIT;
    } else if (type == Set.class) {
      return new HashSet<>(List.of(text.split(",")));
    } else if (type == List.class) {
      return List.of(text.split(","));
    } else if (type == Properties.class) {
      Properties properties = new Properties();
      for (String pair : text.split(",")) {
        properties.setProperty(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
      }
      return properties;
    } else if (type == MessageQueue.class) {
      String[] parts = text.split("/");
      return new MessageQueue(parts[0], parts[1], Integer.parseInt(parts[2]));
    } else if (type == MessageExt.class) {
      String[] parts = text.split("/");
      return admin.viewMessage(parts[0], parts[1]);
    } else if (type == TopicConfig.class) {
      return new TopicConfig(text, 2, 2);
    } else if (type == SubscriptionGroupConfig.class) {
      SubscriptionGroupConfig config = new SubscriptionGroupConfig();
      config.setGroupName(text);
      return config;
    }
    return UNFIT;
  }
}
