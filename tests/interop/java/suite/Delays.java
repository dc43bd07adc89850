package suite;

/** How long the levels of delay are under the settings that a run is for. */
final class Delays {
  static final long[] SHORT = {1, 2, 3, 4, 1, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2};
  static final long[] STOCK = {1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200};

  private static long[] seconds = SHORT;

  private Delays() {}

  static void choose(String settings) {
    seconds = settings.equals("stock") ? STOCK : SHORT;
  }

  static int levels() {
    return seconds.length;
  }

  /** Of a level; one beyond the last is the last. */
  static long secondsOf(int level) {
    return seconds[Math.min(level, seconds.length) - 1];
  }
}
