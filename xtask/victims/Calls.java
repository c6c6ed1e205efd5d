// Hot code that is compiled while it runs, exceptions, garbage and threads; prints the sum.
public class Calls {
    static long work(long n) { if (n % 100 == 99) throw new IllegalStateException(); return n ^ Long.toString(n).hashCode(); }

    static long all(long from, long to) {
        long sum = 0;
        for (long n = from; n < to; n++) { try { sum += work(n); } catch (IllegalStateException left) { sum += 1; } }
        return sum;
    }

    public static void main(String[] arguments) throws InterruptedException {
        long calls = arguments.length > 0 ? Long.parseLong(arguments[0]) : 1000;
        long[] sums = new long[8];
        for (int round = 0; round < 4; round++) {
            Thread[] threads = new Thread[2];
            for (int t = 0; t < 2; t++) { int at = round * 2 + t; threads[t] = new Thread(() -> sums[at] = all(at * calls, (at + 1) * calls)); threads[t].start(); }
            for (Thread thread : threads) thread.join();
        }
        long sum = 0;
        for (long part : sums) sum += part;
        System.out.println(sum);
    }
}
