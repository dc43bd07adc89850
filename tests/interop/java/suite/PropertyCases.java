package suite;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;

/** Properties at their edges: lengths, separators, names that are the broker's own. */
final class PropertyCases {
  private PropertyCases() {}

  static void all(Suite suite) {
    suite.slow("properties.longest", PropertyCases::longest);
    suite.quick("properties.too-long", PropertyCases::tooLong);
    suite.quick("properties.separators", PropertyCases::separators);
    suite.quick("properties.odd-values", PropertyCases::oddValues);
    suite.slow("properties.reserved-names", PropertyCases::reservedNames);
    suite.quick("properties.forged", PropertyCases::forged);
    suite.quick("properties.tags-and-keys", PropertyCases::tagsAndKeys);
    suite.slow("properties.many", PropertyCases::many);
    suite.slow("properties.own-unique-key", PropertyCases::ownUniqueKey);
  }

  /** A message whose properties take so many bytes as the client sends them. */
  private static Message sized(String topic, int bytes) {
    Message message = Stage.message(topic, "of " + bytes);
    MessageClientIDSetter.setUniqID(message);
    message.putUserProperty("filler", "x");
    int without = MessageDecoder.messageProperties2String(message.getProperties()).getBytes(StandardCharsets.UTF_8).length;
    message.putUserProperty("filler", "x".repeat(bytes - without + 1));
    return message;
  }

  private static void longest(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (int bytes : new int[] {1_000, 16_384, 32_600}) {
      stage.say(bytes + " bytes: " + stage.send(sized(topic, bytes)).getSendStatus());
    }
    for (MessageExt seen : stage.read(topic)) {
      stage.say(Stage.text(seen) + " has a filler of " + seen.getProperty("filler").length());
    }
  }

  private static void tooLong(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (int bytes : new int[] {32_768, 33_000, 100_000}) {
      stage.sayRefusal(bytes + " bytes", () -> stage.send(sized(topic, bytes)));
    }
    stage.send(topic, "after");
    stage.say("stored " + Words.bodies(stage.read(topic)));
  }

  private static String shown(String text) {
    return text == null ? "none" : text.replace("\u0001", "<1>").replace("\u0002", "<2>");
  }

  private static void separators(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (String value : List.of("a\u0001b", "a\u0002b", "\u0001", "\u0002", "a\u0002b\u0001c", "a\u0001", "a\u0002")) {
      Message message = Stage.message(topic, shown(value));
      MessageAccessor.putProperty(message, "p", value);
      message.putUserProperty("z", "last");
      stage.say(shown(value) + ": " + stage.refusal(() -> stage.send(message)));
    }
    for (String name : List.of("n\u0001m", "n\u0002m")) {
      Message message = Stage.message(topic, "name " + shown(name));
      MessageAccessor.putProperty(message, name, "v");
      message.putUserProperty("z", "last");
      stage.say("name " + shown(name) + ": " + stage.refusal(() -> stage.send(message)));
    }
    for (MessageExt seen : stage.read(topic)) {
      stage.say("read " + Stage.text(seen) + ": " + shown(Words.properties(seen)));
    }
  }

  private static void oddValues(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message message = Stage.message(topic, "odd");
    MessageAccessor.putProperty(message, "blank", " ");
    MessageAccessor.putProperty(message, "empty", "");
    message.putUserProperty("unicode", "grüße \u4e16\u754c \ud83d\ude00");
    message.putUserProperty("schlüssel", "v");
    message.putUserProperty("equals", "a=b;c:d,{e}");
    message.putUserProperty("lines", "a|b\\c\"d'");
    message.putUserProperty("n".repeat(200), "long name");
    message.putUserProperty("nul", "a\u0000b".replace('\u0000', '\u007f'));
    stage.say(stage.send(message).getSendStatus());
    for (MessageExt seen : stage.read(topic)) {
      stage.say(Words.properties(seen).replace("n".repeat(200), "n*200"));
    }
    for (String value : new String[] {"", " ", null}) {
      stage.sayRefusal("putUserProperty of '" + value + "'", () -> {
        Stage.message(topic, "b").putUserProperty("name", value);
        return "taken";
      });
    }
  }

  private static void reservedNames(Stage stage) throws Exception {
    for (String name : List.of("KEYS", "TAGS", "DELAY", "WAIT", "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "TRAN_MSG", "PGROUP",
        "MIN_OFFSET", "MAX_OFFSET", "BUYER_ID", "ORIGIN_MESSAGE_ID", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG",
        "RECONSUME_TIME", "MSG_REGION", "TRACE_ON", "UNIQ_KEY", "MAX_RECONSUME_TIMES", "CONSUME_START_TIME", "INSTANCE_ID",
        "CORRELATION_ID", "REPLY_TO_CLIENT", "TTL", "POP_CK", "TIMER_DELAY_SEC", "TIMER_DELIVER_MS", "__SHARDINGKEY", "CLUSTER",
        "DLQ_ORIGIN_TOPIC", "INNER_NUM", "__BORNHOST")) {
      String refusal = stage.refusal(() -> {
        Stage.message("T", "b").putUserProperty(name, "v");
        return "done";
      });
      stage.say(name + " " + (refusal.equals("done") ? "free" : "reserved"));
    }
  }

  /** What a client sets that knows the broker's names: the message is stored and read as any other. */
  private static void forged(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (String[] property : new String[][] {{"RETRY_TOPIC", "elsewhere"}, {"REAL_TOPIC", "elsewhere"}, {"REAL_QID", "3"},
        {"MIN_OFFSET", "99"}, {"MAX_OFFSET", "99"}, {"ORIGIN_MESSAGE_ID", "nobody"}, {"RECONSUME_TIME", "5"},
        {"DLQ_ORIGIN_TOPIC", "elsewhere"}, {"CONSUME_START_TIME", "1"}, {"1ST_POP_TIME", "1"}, {"PGROUP", "nobody"},
        {"DELAY", "0"}, {"TRAN_MSG", "false"}, {"__transactionId__", "nobody"}, {"CORRELATION_ID", "c"}, {"TIMER_OUT_MS", "1"}}) {
      Message message = Stage.message(topic, property[0]);
      MessageAccessor.putProperty(message, property[0], property[1]);
      stage.say(property[0] + ": " + stage.refusal(() -> stage.send(message)));
    }
    for (MessageExt seen : stage.read(topic)) {
      String value = Stage.text(seen).endsWith("_OFFSET") ? "" : " " + Words.properties(seen);
      stage.say("read " + Stage.text(seen) + " at " + seen.getQueueOffset() + " of " + seen.getTopic() + ", reconsumed "
          + seen.getReconsumeTimes() + value);
    }
  }

  private static void tagsAndKeys(Stage stage) throws Exception {
    String topic = stage.topic(1);
    String[][] both = {{"A", "k"}, {" A ", " k "}, {"A||B", "k1 k2 k3"}, {"", ""}, {"*", "k,l"}, {"größe", "schlüssel"}};
    for (String[] one : both) {
      Message message = Stage.message(topic, "'" + one[0] + "' '" + one[1] + "'");
      message.setTags(one[0]);
      message.setKeys(one[1]);
      stage.say(Stage.text(message) + ": " + stage.refusal(() -> stage.send(message)));
    }
    for (MessageExt seen : stage.read(topic)) {
      stage.say("read " + Stage.text(seen) + " with '" + seen.getTags() + "' '" + seen.getKeys() + "'");
    }
    for (String tags : List.of("A", " A ", "A||B", "B", "größe", "*", "A || größe", "")) {
      stage.say("subscribed to '" + tags + "': " + Words.bodies(stage.read(topic, 0, tags)));
    }
  }

  private static void many(Stage stage) throws Exception {
    String topic = stage.topic(1);
    Message message = Stage.message(topic, "many");
    for (int number = 0; number < 800; number++) {
      message.putUserProperty("name" + number, "value" + number);
    }
    stage.say(stage.send(message).getSendStatus());
    MessageExt seen = stage.read(topic).get(0);
    int right = 0;
    for (int number = 0; number < 800; number++) {
      right += ("value" + number).equals(seen.getProperty("name" + number)) ? 1 : 0;
    }
    stage.say(right + " as sent");
  }

  private static void ownUniqueKey(Stage stage) throws Exception {
    String topic = stage.topic(1);
    for (int number = 0; number < 2; number++) {
      Message message = Stage.message(topic, "m" + number);
      MessageAccessor.putProperty(message, "UNIQ_KEY", "my own " + topic);
      stage.say("id " + stage.send(message).getMsgId());
    }
    stage.say("both are there: " + Words.bodies(stage.read(topic)) + ", id " + stage.read(topic).get(1).getMsgId());
  }
}
