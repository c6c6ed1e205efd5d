/* Calls that return, that are left by longjmp, and that call themselves: "CALLS" of each; prints the sum. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
static jmp_buf back;
static volatile unsigned long sum;
__attribute__((noinline)) void jumper(long n) { sum += n; if (n % 10 == 9) longjmp(back, 1); sum += 1; }
__attribute__((noinline)) long deep(long n) { volatile long kept = n; long below = n > 0 ? deep(n - 1) : 0; return below + kept; }
int main(int argc, char **argv) {
  long calls = argc > 1 ? atol(argv[1]) : 1000;
  for (volatile long n = 0; n < calls; n++) if (!setjmp(back)) jumper(n);
  for (long n = 0; n < calls / 10; n++) sum += deep(9);
  printf("%lu\n", sum);
}
