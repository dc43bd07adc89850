import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/** Kafka's command line tools in this process, so that many runs cost one start of Java. */
final class Tools {
  /** Thrown where the tool would end its process. */
  private static final class Ended extends Error {
    private static final long serialVersionUID = 1;
  }

  /** What the tool prints until its process would have ended; what it does after that nobody sees. */
  private static final class Printed extends ByteArrayOutputStream {
    private boolean closed;

    @Override
    public synchronized void write(int b) {
      if (!closed) {
        super.write(b);
      }
    }

    @Override
    public synchronized void write(byte[] bytes, int from, int length) {
      if (!closed) {
        super.write(bytes, from, length);
      }
    }

    synchronized byte[] end() {
      closed = true;
      return toByteArray();
    }
  }

  private final Printed printed = new Printed();
  private final List<Runnable> hooks = new ArrayList<>();
  private int code;
  private boolean ended;

  private Tools() {}

  /**
   * tool class= [a=hex]... [in=hex]: runs the main class, `in` its standard input; prints its exit
   * code and all that it printed.
   */
  static void handle(Wire.Args args) throws Exception {
    new Tools().run(args);
  }

  private void run(Wire.Args args) throws Exception {
    String[] words = args.all("a").stream().map(Wire::text).toArray(String[]::new);
    byte[] input = args.bytes("in");
    InputStream in = System.in;
    PrintStream out = System.out;
    PrintStream err = System.err;
    PrintStream both = new PrintStream(printed, true, StandardCharsets.UTF_8);
    Exit.setExitProcedure((code, message) -> end(code));
    Exit.setHaltProcedure((code, message) -> end(code));
    Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
    System.setIn(new ByteArrayInputStream(input == null ? new byte[0] : input));
    System.setOut(both);
    System.setErr(both);
    try {
      Class.forName(args.need("class")).getMethod("main", String[].class)
          .invoke(null, (Object) words);
      end(0);
    } catch (Ended e) {
      // As every tool ends.
    } catch (InvocationTargetException e) {
      if (!ended) { // as Java ends when main throws
        e.getCause().printStackTrace(both);
        code = 1;
      }
    } finally {
      System.setIn(in);
      System.setOut(out);
      System.setErr(err);
      Exit.resetExitProcedure();
      Exit.resetHaltProcedure();
      Exit.resetShutdownHookAdder();
    }
    Wire.print(new Wire.Json().put("code", code).put("printed", Wire.hex(printed.end())));
  }

  /** Does what happens in a process that ends; the first end counts. */
  private void end(int code) {
    if (!ended) {
      ended = true;
      this.code = code;
      hooks.forEach(Runnable::run);
      printed.end();
    }
    throw new Ended();
  }
}
