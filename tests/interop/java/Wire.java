import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The line protocol of the drivers. A command is one line, a verb and key=value words; bytes are
 * hex. The answer is JSON lines, of which the last is {"done":true} or {"error":text}. A line with
 * "event" may come at any time.
 */
final class Wire {
  interface Handler {
    void handle(String verb, Args args) throws Exception;
  }

  private static final PrintStream OUT =
      new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

  private Wire() {}

  /** Obeys standard input until it ends. What libraries print goes to standard error. */
  static void serve(Handler handler) throws Exception {
    System.setOut(System.err);
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      int space = line.indexOf(' ');
      String verb = space < 0 ? line : line.substring(0, space);
      Args args = new Args(space < 0 ? "" : line.substring(space + 1));
      if (verb.equals("send")) { // unanswered: `flush` tells how it ended
        handler.handle(verb, args);
        continue;
      }
      try {
        handler.handle(verb, args);
        print(new Json().put("done", true));
      } catch (Throwable e) {
        StringWriter trace = new StringWriter();
        e.printStackTrace(new PrintWriter(trace));
        print(new Json().put("error", trace.toString()));
      }
    }
  }

  static void print(Json json) {
    synchronized (OUT) {
      OUT.append(json.toString()).append('\n');
      OUT.flush();
    }
  }

  static byte[] bytes(String hex) {
    byte[] bytes = new byte[hex.length() / 2];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
    }
    return bytes;
  }

  static String text(String hex) {
    return new String(bytes(hex), StandardCharsets.UTF_8);
  }

  static String hex(byte[] bytes) {
    if (bytes == null) {
      return null;
    }
    StringBuilder hex = new StringBuilder(2 * bytes.length);
    for (byte b : bytes) {
      hex.append(Character.forDigit((b >> 4) & 15, 16)).append(Character.forDigit(b & 15, 16));
    }
    return hex.toString();
  }

  /** The key=value words of a command; a key may come more than once. */
  static final class Args {
    private final Map<String, List<String>> words = new HashMap<>();

    Args(String line) {
      for (String word : line.split(" ")) {
        int equals = word.indexOf('=');
        if (equals > 0) {
          words.computeIfAbsent(word.substring(0, equals), k -> new ArrayList<>())
              .add(word.substring(equals + 1));
        }
      }
    }

    String need(String key) {
      List<String> values = words.get(key);
      if (values == null) {
        throw new IllegalArgumentException("the command lacks " + key + "=");
      }
      return values.get(0);
    }

    String or(String key, String fallback) {
      return words.containsKey(key) ? words.get(key).get(0) : fallback;
    }

    int number(String key, int fallback) {
      return Integer.parseInt(or(key, Integer.toString(fallback)));
    }

    byte[] bytes(String key) {
      return words.containsKey(key) ? Wire.bytes(words.get(key).get(0)) : null;
    }

    List<String> all(String key) {
      return words.getOrDefault(key, List.of());
    }

    /** The words whose key starts with the prefix, without it. */
    Map<String, String> under(String prefix) {
      Map<String, String> found = new HashMap<>();
      words.forEach((key, values) -> {
        if (key.startsWith(prefix)) {
          found.put(key.substring(prefix.length()), values.get(0));
        }
      });
      return found;
    }
  }

  /** A JSON object or array under construction, in the order of its puts. */
  static final class Json {
    private final StringBuilder text = new StringBuilder();

    Json put(String key, Object value) {
      text.append(text.length() == 0 ? "" : ",");
      write(key);
      text.append(':');
      write(value);
      return this;
    }

    private void write(Object value) {
      if (value == null || value instanceof Number || value instanceof Boolean
          || value instanceof Json) {
        text.append(value);
      } else if (value instanceof Map) {
        Json object = new Json();
        ((Map<?, ?>) value).forEach((k, v) -> object.put(k.toString(), v));
        text.append(object);
      } else if (value instanceof List) {
        text.append('[');
        String comma = "";
        for (Object item : (List<?>) value) {
          text.append(comma);
          write(item);
          comma = ",";
        }
        text.append(']');
      } else {
        quote(value.toString());
      }
    }

    private void quote(String value) {
      text.append('"');
      for (char c : value.toCharArray()) {
        if (c == '"' || c == '\\') {
          text.append('\\').append(c);
        } else if (c < 0x20) {
          text.append(String.format("\\u%04x", (int) c));
        } else {
          text.append(c);
        }
      }
      text.append('"');
    }

    @Override
    public String toString() {
      return "{" + text + "}";
    }
  }
}
