package suite;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * The behaviour suite: runs its cases against a RocketMQ node by the stock client and prints for each one a line, its
 * name and its verdict: statements of what was seen, behind tabs, in words that do not depend on how fast the machine is.
 *
 * <p>Suite NAMESRV [--settings short|stock] [--quick] [--only PREFIX] [--threads N]: cases of one set of the
 * broker's settings; only the quick ones; only those with names that begin like that.
 */
public final class Suite {
  /** What a case does. */
  interface Body {
    void run(Stage stage) throws Exception;
  }

  /** A case: which settings of the broker it is for, and whether it takes so little that every test run has it. */
  record Case(String name, String settings, boolean quick, Body body) {}


  private final List<Case> cases = new ArrayList<>();

  /** A case that takes little. */
  void quick(String name, Body body) {
    cases.add(new Case(name, "short", true, body));
  }

  /** A case that takes longer. */
  void slow(String name, Body body) {
    cases.add(new Case(name, "short", false, body));
  }

  /** A case for a broker with its own timings. */
  void stock(String name, Body body) {
    cases.add(new Case(name, "stock", false, body));
  }

  public static void main(String[] arguments) throws Exception {
    String settings = "short";
    String only = "";
    int threads = 12;
    boolean quick = false;
    for (int at = 1; at < arguments.length; at++) {
      switch (arguments[at]) {
        case "--settings": settings = arguments[++at]; break;
        case "--only": only = arguments[++at]; break;
        case "--threads": threads = Integer.parseInt(arguments[++at]); break;
        case "--quick": quick = true; break;
        default: throw new IllegalArgumentException("no such argument: " + arguments[at]);
      }
    }
    Delays.choose(settings);
    Suite suite = new Suite();
    // Those that wait longest come first.
    TransactionCases.all(suite);
    RetryCases.all(suite);
    DelayCases.all(suite);
    OrderCases.all(suite);
    ConsumeCases.all(suite);
    LiteCases.all(suite);
    OffsetCases.all(suite);
    TraceCases.all(suite);
    QueryCases.all(suite);
    FilterCases.all(suite);
    SendCases.all(suite);
    PropertyCases.all(suite);
    PullCases.all(suite);
    PopCases.all(suite);
    suite.run(arguments[0], settings, only, quick, threads);
    // Clients leave threads behind.
    System.exit(0);
  }

  private void run(String namesrv, String settings, String only, boolean quick, int threads)
      throws Exception {
    Clients clients = new Clients(namesrv);
    ExecutorService runners = Executors.newFixedThreadPool(threads);
    for (Case one : cases) {
      if (one.settings.equals(settings) && one.name.startsWith(only) && (one.quick || !quick)) {
        runners.execute(() -> run(one, clients));
      }
    }
    runners.shutdown();
    if (!runners.awaitTermination(1, TimeUnit.HOURS)) {
      throw new IllegalStateException("the suite takes too long");
    }
  }

  private static void run(Case one, Clients clients) {
    long began = System.currentTimeMillis();
    String verdict;
    try (Stage stage = new Stage(clients)) {
      verdict = verdict(one, stage);
    }
    synchronized (Suite.class) {
      System.out.println(one.name + "\t" + verdict);
      System.out.flush();
      System.err.println(one.name + ": " + (System.currentTimeMillis() - began) + " ms");
    }
  }

  private static String verdict(Case one, Stage stage) {
    try {
      one.body.run(stage);
    } catch (Throwable thrown) {
      thrown.printStackTrace();
      stage.say("FAILED " + thrown);
    }
    return stage.verdict();
  }
}
