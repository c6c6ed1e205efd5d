/* Two stacks of makecontext in turn, each inside a function that is watched; prints the sum. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static ucontext_t home, other;
static volatile unsigned long sum;
static char stack[65536];
__attribute__((noinline)) void step(ucontext_t *from, ucontext_t *to, long n) { sum += n; if (n % 3 == 0) swapcontext(from, to); sum += 1; }
static void run(void) { for (long n = 0;; n++) { step(&other, &home, n); } }
int main(int argc, char **argv) {
  long calls = argc > 1 ? atol(argv[1]) : 1000;
  getcontext(&other); other.uc_stack.ss_sp = stack; other.uc_stack.ss_size = sizeof stack; makecontext(&other, run, 0);
  for (long n = 0; n < calls; n++) step(&home, &other, n);
  printf("%lu\n", sum);
}
