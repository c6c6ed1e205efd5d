/* Threads cancelled inside a function, children forked inside it; prints the sum. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned long sum;
__attribute__((noinline)) void work(long n) { sum += n; if (n % 50 == 48) pthread_testcancel(); if (n % 50 == 49) { pid_t child = fork(); if (!child) _exit(0); waitpid(child, 0, 0); } sum += 1; }
static void *thread(void *none) { pthread_cancel(pthread_self()); for (long n = 1;; n++) work(n); return none; }
int main(int argc, char **argv) {
  long calls = argc > 1 ? atol(argv[1]) : 1000;
  for (long n = 0; n < calls; n++) { if (n % 100 == 0) { pthread_t one; pthread_create(&one, 0, thread, 0); pthread_join(one, 0); } work(n); }
  printf("%lu\n", sum);
}
