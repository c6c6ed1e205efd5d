// The same measurement as src/main.rs, for structures of C and C++: peers NAME N KEYS.
#include <absl/container/btree_set.h>
#include <Judy.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
static double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
static double cpu() { return now(CLOCK_THREAD_CPUTIME_ID); }
static double resident() {
  long all = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%ld %ld", &all, &pages) != 2) abort();
  fclose(file);
  return pages * 4096.0;
}

struct Absl {
  absl::btree_set<uint64_t> set;
  void insert(uint64_t key) { set.insert(key); }
  bool contains(uint64_t key) const { return set.contains(key); }
  uint64_t fold() const {
    uint64_t sum = 0;
    for (uint64_t key : set) sum ^= key;
    return sum;
  }
};
struct Judy {
  Pvoid_t set = nullptr;
  void insert(uint64_t key) { Judy1Set(&set, key, PJE0); }
  bool contains(uint64_t key) const { return Judy1Test(set, key, PJE0); }
  uint64_t fold() const {
    uint64_t sum = 0;
    Word_t key = 0;
    for (int found = Judy1First(set, &key, PJE0); found; found = Judy1Next(set, &key, PJE0)) sum ^= key;
    return sum;
  }
};

template <class Set> static void measure(uint64_t n, const std::string &which) {
  const int folds = 20;
  std::vector<uint64_t> keys(n);
  for (uint64_t at = 0; at < n; at++)
    keys[at] = which == "rising" ? at : which == "falling" ? n - at : mix((at + 1) * 0x9e3779b97f4a7c15 + 2012);
  std::vector<uint64_t> order = keys;
  std::sort(order.begin(), order.end(), [](uint64_t a, uint64_t b) {
    return mix(a * 0x2545f4914f6cdd1d) < mix(b * 0x2545f4914f6cdd1d);
  });
  Set set;
  double before = resident(), from = cpu();
  for (uint64_t key : keys) set.insert(key);
  double insert = (cpu() - from) / n, bytes = (resident() - before) / n;
  from = cpu();
  for (uint64_t key : order)
    if (!set.contains(key)) abort();
  double find = (cpu() - from) / n;
  volatile uint64_t sink = 0;
  from = cpu();
  for (int turn = 0; turn < folds; turn++) sink = sink ^ set.fold();
  double fold = (cpu() - from) / n / folds, worst = 0;
  Set again;
  for (uint64_t key : keys) {
    double since = now(CLOCK_MONOTONIC);
    again.insert(key);
    worst = std::max(worst, now(CLOCK_MONOTONIC) - since);
  }
  printf("%g %g %g %g %g\n", insert, find, fold, bytes, worst / 1e3);
}

int main(int count, char **words) {
  if (count != 4) return fprintf(stderr, "peers NAME N random|rising|falling\n"), 2;
  uint64_t n = strtoull(words[2], nullptr, 10);
  if (std::string(words[1]) == "absl") measure<Absl>(n, words[3]);
  else measure<Judy>(n, words[3]);
}
