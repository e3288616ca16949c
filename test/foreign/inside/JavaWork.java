import java.security.MessageDigest;
import java.util.*;
import java.util.stream.*;
import java.util.zip.*;

/** The work of the Java test: JavaWork SCALE SEED prints `check: hash` lines. */
public class JavaWork {
  static String hex(byte[] bytes) throws Exception {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
  }

  static void show(String what, Object value) { System.out.println(what + ": " + value); }

  static Map<String, long[]> fill(int count, long seed) {
    Random random = new Random(seed);
    Map<String, long[]> map = new HashMap<>();
    for (int i = 0; i < count; i++)
      map.put("key-" + random.nextInt(count * 2), random.longs(4 + random.nextInt(12)).toArray());
    return map;
  }

  static void churn(Map<String, long[]> map, int rounds, long seed) {  // garbage of all ages, while the map lives
    Random random = new Random(seed);
    List<String> keys = new ArrayList<>(new TreeMap<>(map).keySet());
    for (int i = 0; i < rounds; i++) {
      String key = keys.get(random.nextInt(keys.size()));
      long[] value = map.get(key).clone();
      value[i % value.length] ^= i;
      map.put(key, value);
    }
  }

  static String digest(Map<String, long[]> map) throws Exception {
    MessageDigest sha = MessageDigest.getInstance("SHA-256");
    for (Map.Entry<String, long[]> entry : new TreeMap<>(map).entrySet()) {
      sha.update(entry.getKey().getBytes());
      sha.update(Arrays.toString(entry.getValue()).getBytes());
    }
    return HexFormat.of().formatHex(sha.digest());
  }

  static byte[] zipped(byte[] data) throws Exception {
    Deflater deflater = new Deflater(1);
    deflater.setInput(data);
    deflater.finish();
    byte[] out = new byte[data.length + 1024];
    int length = deflater.deflate(out);
    Inflater inflater = new Inflater();
    inflater.setInput(out, 0, length);
    byte[] back = new byte[data.length];
    inflater.inflate(back);
    if (!Arrays.equals(back, data)) throw new IllegalStateException("inflate does not give back what went in");
    return Arrays.copyOf(out, length);
  }

  public static void main(String[] arguments) throws Exception {
    double scale = Double.parseDouble(arguments[0]);
    long seed = Long.parseLong(arguments[1]);
    Map<String, long[]> map = fill((int) (300_000 * scale), seed);
    show("map", digest(map));
    churn(map, (int) (1_500_000 * scale), seed + 1);
    show("map after changes", digest(map));
    long[] numbers = new Random(seed).longs((int) (2_000_000 * scale)).toArray();
    long[] sorted = numbers.clone();
    Arrays.parallelSort(sorted);
    show("sorted", Arrays.hashCode(sorted));
    show("streams", Arrays.stream(numbers).parallel().map(n -> n * 31 ^ n >>> 7).sum());
    byte[] bytes = new byte[(int) (12_000_000 * scale)];
    new Random(seed).nextBytes(bytes);
    for (int i = 0; i < bytes.length; i++) bytes[i] &= 15;
    show("zipped", hex(zipped(bytes)));
    System.gc();
    show("map after a collection", digest(map));
    List<String> found = IntStream.range(0, 4).parallel().mapToObj(part -> {
      try {
        Map<String, long[]> mine = fill((int) (40_000 * scale), seed + part);
        churn(mine, (int) (200_000 * scale), part);
        return digest(mine);
      } catch (Exception error) { throw new IllegalStateException(error); }
    }).collect(Collectors.toList());
    show("threads", found);
    try {  // a handled SIGSEGV of HotSpot's
      Object nothing = arguments.length > 99 ? "" : null;
      show("null", nothing.hashCode());
    } catch (NullPointerException expected) { show("null", "caught"); }
    show("deep", deep(0));
    show("map at the end", digest(map));
  }

  static String deep(int depth) {  // ends in the guard page of the stack
    try { return deep(depth + 1); } catch (StackOverflowError expected) { return "caught"; }
  }
}
