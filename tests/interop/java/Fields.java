import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.common.message.MessageQueue;

/** Every field of a thing of RocketMQ's, and of those in it: a line `path = value` each, in a fixed order. */
final class Fields {
  private final StringBuilder out = new StringBuilder();

  private Fields() {}

  static String of(Object thing) throws Exception {
    Fields fields = new Fields();
    fields.put("", thing);
    return fields.out.toString();
  }

  private void put(String path, Object thing) throws Exception {
    if (thing == null || thing instanceof String || thing instanceof Number || thing instanceof Boolean
        || thing instanceof Enum || thing instanceof AtomicLong || !mine(thing)) {
      line(path, String.valueOf(thing));
    } else if (thing instanceof byte[]) {
      line(path, new String((byte[]) thing, StandardCharsets.UTF_8));
    } else if (thing instanceof MessageQueue) {
      line(path, text(thing));
    } else if (thing instanceof Map) {
      Map<String, Object> sorted = new TreeMap<>();
      ((Map<?, ?>) thing).forEach((key, value) -> sorted.put(text(key), value));
      for (Map.Entry<String, Object> entry : sorted.entrySet()) {
        put(path + "{" + entry.getKey() + "}", entry.getValue());
      }
      empty(path, sorted.isEmpty());
    } else if (thing instanceof Set) {
      List<String> parts = new ArrayList<>();
      for (Object part : (Set<?>) thing) {
        parts.add(of(part));
      }
      parts.sort(null);
      for (int i = 0; i < parts.size(); i++) {
        for (String part : parts.get(i).split("\n")) {
          out.append(path).append('[').append(i).append(']').append(part).append('\n');
        }
      }
      empty(path, parts.isEmpty());
    } else if (thing instanceof Collection || thing.getClass().isArray()) {
      Object[] parts = thing instanceof Collection ? ((Collection<?>) thing).toArray() : null;
      int count = parts == null ? Array.getLength(thing) : parts.length;
      for (int i = 0; i < count; i++) {
        put(path + "[" + i + "]", parts == null ? Array.get(thing, i) : parts[i]);
      }
      empty(path, count == 0);
    } else {
      fields(path, thing);
    }
  }

  private static boolean mine(Object thing) {
    return thing instanceof Map || thing instanceof Collection || thing.getClass().isArray()
        || thing.getClass().getName().startsWith("org.apache.rocketmq.");
  }

  private void fields(String path, Object thing) throws Exception {
    Map<String, Object> sorted = new TreeMap<>();
    for (Class<?> type = thing.getClass(); type != Object.class && type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (!Modifier.isStatic(field.getModifiers()) && field.getType() != Random.class
            && type.getName().startsWith("org.apache.rocketmq.")) {
          field.setAccessible(true);
          sorted.put(field.getName(), field.get(thing));
        }
      }
    }
    for (Map.Entry<String, Object> entry : sorted.entrySet()) {
      put(path + "." + entry.getKey(), entry.getValue());
    }
    empty(path, sorted.isEmpty());
  }

  private static String text(Object key) {
    if (key instanceof MessageQueue) {
      MessageQueue queue = (MessageQueue) key;
      return queue.getTopic() + "/" + queue.getBrokerName() + "/" + queue.getQueueId();
    }
    return String.valueOf(key);
  }

  private void empty(String path, boolean empty) {
    if (empty) {
      line(path, "(empty)");
    }
  }

  private void line(String path, String value) {
    out.append(path).append(" = ").append(value).append('\n');
  }
}
