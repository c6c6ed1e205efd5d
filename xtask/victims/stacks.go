// Goroutines whose stacks grow and which change threads, in a function that is watched; prints the sum.
package main

import ("fmt"; "os"; "runtime"; "strconv"; "sync"; "sync/atomic")

//go:noinline
func Deep(n int) int { var room [256]byte; room[n%256] = byte(n); if n == 0 { return int(room[0]) }; return Deep(n-1) + int(room[n%256]) }

//go:noinline
func Work(n int) int { if n%7 == 0 { runtime.Gosched() }; return Deep(n % 60) }

func main() {
	calls := 1000
	if len(os.Args) > 1 { calls, _ = strconv.Atoi(os.Args[1]) }
	var sum atomic.Int64
	for round := 0; round < calls/100; round++ {
		var all sync.WaitGroup
		for g := 0; g < 10; g++ { all.Add(1); go func() { defer all.Done(); for n := 0; n < 10; n++ { sum.Add(int64(Work(n * 7 + g))) } }() }
		all.Wait()
	}
	fmt.Println(sum.Load())
}
