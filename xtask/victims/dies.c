/* Aborts inside a function that is watched. */
#include <stdlib.h>
__attribute__((noinline)) void work(volatile long *n) { if (++*n == 100) abort(); }
int main(void) { volatile long n = 0; for (;;) work(&n); }
