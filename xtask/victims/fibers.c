/* Two stacks that are switched by setjmp and longjmp alone, each inside a function that is watched; prints the sum. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static jmp_buf home, other;
static ucontext_t first, begun;
static volatile unsigned long sum;
static char stack[65536];
__attribute__((noinline)) void step(jmp_buf *from, jmp_buf *to, long n) { sum += n; if (n % 3 == 0 && !_setjmp(*from)) _longjmp(*to, 1); sum += 1; }
static void run(void) { for (long n = 0;; n++) { if (n == 0 && !_setjmp(other)) _longjmp(home, 1); step(&other, &home, n); } }
int main(int argc, char **argv) {
  long calls = argc > 1 ? atol(argv[1]) : 1000;
  getcontext(&begun); begun.uc_stack.ss_sp = stack; begun.uc_stack.ss_size = sizeof stack; begun.uc_link = &first; makecontext(&begun, run, 0);
  if (!_setjmp(home)) setcontext(&begun);
  for (long n = 0; n < calls; n++) step(&home, &other, n);
  printf("%lu\n", sum);
}
