/** Tools whose end can be told from that of the process are those of later versions. */
final class Tools {
  private Tools() {}

  static void handle(Wire.Args args) {
    throw new IllegalArgumentException("no tools in this version");
  }
}
