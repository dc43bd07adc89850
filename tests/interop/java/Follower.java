import org.apache.rocketmq.common.message.MessageExt;

/**
 * A consumer that asks for messages itself, on and on in a thread of its own, and notes its
 * positions; messages come as events.
 */
abstract class Follower extends Thread {
  private volatile boolean leaving;
  private volatile Exception failure;

  Follower(String name) {
    super(name);
  }

  /** Asks once more. */
  abstract void step() throws Exception;

  /** Stores the positions and goes. */
  abstract void close();

  @Override
  public void run() {
    try {
      while (!leaving) {
        step();
      }
    } catch (Exception e) {
      failure = e;
      Wire.print(new Wire.Json().put("event", "failed").put("member", getName())
          .put("what", e.toString()));
    } finally {
      close();
    }
  }

  void tell(MessageExt message) {
    Wire.print(RocketmqDriver.json(message).put("event", "record").put("member", getName()));
  }

  void leave() throws Exception {
    leaving = true;
    join();
    if (failure != null) {
      throw failure;
    }
  }
}
