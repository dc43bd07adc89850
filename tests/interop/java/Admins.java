import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * The stock mqadmin, many commands in one process: Admins NAMESRV, commands on standard input (see
 * Wire). Beside them the calls of DefaultMQAdminExt that the dashboard makes, and clients to look at.
 */
final class Admins {
  private static final class Commands extends MQAdminStartup {
    /** main0 adds them all each time. */
    static void run(String[] command) {
      SUB_COMMANDS.clear();
      main0(command, null);
    }
  }

  /** In place of an end of the process. */
  private static final class Exit extends Error {
    final int status;

    Exit(int status) {
      super("exit " + status, null, false, false);
      this.status = status;
    }
  }

  private static final long LIMIT_NANOS = 120_000_000_000L;

  private static volatile boolean ending;
  private static DefaultMQAdminExt dashboard;

  private Admins() {}

  @SuppressWarnings("removal") // nothing else keeps a command from ending the process
  public static void main(String[] args) throws Exception {
    System.setProperty("rocketmq.namesrv.addr", args[0]);
    System.setSecurityManager(new SecurityManager() {
      @Override
      public void checkExit(int status) {
        if (!ending) {
          throw new Exit(status);
        }
      }

      @Override
      public void checkPermission(java.security.Permission permission) {}

      @Override
      public void checkPermission(java.security.Permission permission, Object context) {}
    });
    AdminClients clients = new AdminClients();
    Wire.serve((verb, words) -> {
      switch (verb) {
        case "run": print(captured(words)); break;
        case "call": print(called(words)); break;
        case "monitor": print(AdminMonitor.round()); break;
        default: clients.handle(verb, words);
      }
    });
    ending = true;
    System.exit(0);
  }

  private static void print(String out) {
    Wire.print(new Wire.Json().put("out", out));
  }

  /**
   * run a=HEX... [stop=HEX]: what the command printed. One that goes on for ever is interrupted when
   * what it printed has a match of `stop`.
   */
  private static String captured(Wire.Args words) throws Exception {
    String[] command = words.all("a").stream().map(Wire::text).toArray(String[]::new);
    String stop = words.or("stop", null);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream out = System.out;
    PrintStream err = System.err;
    PrintStream both = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    System.setOut(both);
    System.setErr(both);
    try {
      Thread thread = new Thread(() -> {
        try {
          Commands.run(command);
        } catch (Exit exit) {
          both.printf("[exit %d]%n", exit.status);
        }
      }, "command");
      thread.start();
      Pattern pattern = stop == null ? null : Pattern.compile(Wire.text(stop));
      long deadline = System.nanoTime() + LIMIT_NANOS;
      for (thread.join(20); thread.isAlive(); thread.join(20)) {
        hasten(thread);
        if (pattern != null && (System.nanoTime() > deadline
            || pattern.matcher(bytes.toString(StandardCharsets.UTF_8)).find())) {
          thread.interrupt();
          pattern = null;
        }
      }
    } finally {
      System.setOut(out);
      System.setErr(err);
    }
    return bytes.toString(StandardCharsets.UTF_8);
  }

  /** Does what ends a client. */
  static void hastened(Runnable end) throws InterruptedException {
    Thread thread = new Thread(end, "ending");
    thread.start();
    for (thread.join(20); thread.isAlive(); thread.join(20)) {
      hasten(thread);
    }
  }

  /** A client that shuts down waits for a thread of its own that looks every three seconds only: it is woken. */
  private static void hasten(Thread thread) {
    for (StackTraceElement frame : thread.getStackTrace()) {
      if (frame.getClassName().endsWith(".NettyRemotingClient") && frame.getMethodName().equals("shutdown")) {
        Thread.getAllStackTraces().keySet().stream()
            .filter(one -> one.getName().startsWith("NettyEventExecutor")).forEach(Thread::interrupt);
        return;
      }
    }
  }

  private static DefaultMQAdminExt dashboard() throws Exception {
    if (dashboard == null) {
      dashboard = new DefaultMQAdminExt(60_000);
      dashboard.setInstanceName("dashboard");
      dashboard.start();
    }
    return dashboard;
  }

  /** call a=HEX...: a method of DefaultMQAdminExt and its arguments; every field of what it returns. */
  private static String called(Wire.Args words) throws Exception {
    List<String> texts = words.all("a").stream().map(Wire::text).toList();
    try {
      return Fields.of(AdminCalls.call(dashboard(), texts.get(0), texts.subList(1, texts.size())));
    } catch (InvocationTargetException e) {
      return e.getCause() + "\n";
    }
  }
}
