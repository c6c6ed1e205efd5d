// Throws through a function in 1 of 100 calls; prints how many were caught.
#include <cstdio>
#include <cstdlib>
static volatile long sum;
namespace tree { __attribute__((noinline)) void insert(long n) { sum = sum + n; if (n % 100 == 99) throw n; sum = sum + 1; } }
int main(int argc, char **argv) {
  long calls = argc > 1 ? atol(argv[1]) : 1000, caught = 0;
  for (long n = 0; n < calls; n++) try { tree::insert(n); } catch (long) { caught++; }
  std::printf("%ld %ld\n", caught, (long)sum);
}
