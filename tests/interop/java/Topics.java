import java.util.ArrayList;
import java.util.Collections;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.ConfigResource;

/** The admin client's commands of KafkaDriver. */
final class Topics {
  private Topics() {}

  static void handle(String verb, String bootstrap, Wire.Args args) throws Exception {
    try (AdminClient admin =
        AdminClient.create(Collections.singletonMap("bootstrap.servers", bootstrap))) {
      switch (verb) {
        case "create": create(admin, args); break;
        case "describe": describe(admin, args); break;
        case "delete":
          admin.deleteTopics(Collections.singleton(args.need("topic"))).all().get();
          break;
        default:
          Wire.print(new Wire.Json().put("topics",
              new ArrayList<>(new TreeSet<>(admin.listTopics().names().get()))));
      }
    }
  }

  /** create topic= partitions= key= value=: a topic with one configuration of its own. */
  private static void create(AdminClient admin, Wire.Args args) throws Exception {
    NewTopic topic = new NewTopic(args.need("topic"), args.number("partitions", 1), (short) 1)
        .configs(Collections.singletonMap(args.need("key"), args.need("value")));
    admin.createTopics(Collections.singleton(topic)).all().get();
  }

  /** describe topic= key=: how many partitions it has and the value of that configuration. */
  private static void describe(AdminClient admin, Wire.Args args) throws Exception {
    String topic = args.need("topic");
    int partitions = described(admin, topic).partitions().size();
    ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
    Config config =
        admin.describeConfigs(Collections.singleton(resource)).all().get().get(resource);
    Wire.print(new Wire.Json().put("partitions", partitions)
        .put("value", config.get(args.need("key")).value()));
  }

  /** By reflection: `all` went with 4.0, `allTopicNames` came with 3.1. */
  @SuppressWarnings("unchecked")
  private static TopicDescription described(AdminClient admin, String topic) throws Exception {
    DescribeTopicsResult result = admin.describeTopics(Collections.singleton(topic));
    Object future;
    try {
      future = DescribeTopicsResult.class.getMethod("allTopicNames").invoke(result);
    } catch (NoSuchMethodException e) {
      future = DescribeTopicsResult.class.getMethod("all").invoke(result);
    }
    return ((KafkaFuture<Map<String, TopicDescription>>) future).get().get(topic);
  }
}
