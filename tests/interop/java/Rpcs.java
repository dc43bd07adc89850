import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Requests and replies of the stock client; RocketmqDriver finds it by name. */
final class Rpcs implements RocketmqDriver.Rpc {
  @Override
  public Message request(DefaultMQProducer producer, Message message, long timeoutMillis)
      throws Exception {
    return producer.request(message, timeoutMillis);
  }

  @Override
  public Message reply(MessageExt request, byte[] body) throws Exception {
    return MessageUtil.createReplyMessage(request, body);
  }
}
