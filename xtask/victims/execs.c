/* Becomes another program (itself, under another name) inside a function that is watched: half of the calls before, half after. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile unsigned long sum;
__attribute__((noinline)) void work(long n, char **next) { sum += n; if (next) execv("/proc/self/exe", next); sum += 1; }
int main(int argc, char **argv) {
  long calls = argc > 1 ? atol(argv[1]) : 1000;
  char before[32], *next[] = {"again", argv[1], before, 0};
  if (argc > 2) sum = strtoul(argv[2], 0, 10);
  for (long n = 0; n < calls / 2; n++) work(n, 0);
  if (argc <= 2) { snprintf(before, sizeof before, "%lu", sum); work(0, argv[1] ? next : (char *[]){"again", "1000", before, 0}); }
  printf("%lu\n", sum);
}
