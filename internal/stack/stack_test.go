package stack

import (
	"fmt"
	"testing"
)

// down calls itself n times, with a frame like those of ordinary functions.
//
//go:noinline
func down(n int) int {
	var frame [200]byte
	if n == 0 {
		return len(frame)
	}
	frame[n%len(frame)] = 1
	return down(n-1) + int(frame[0])
}

// BenchmarkGoroutine is a goroutine that calls deep down, with and without.
func BenchmarkGoroutine(b *testing.B) {
	for _, deep := range []bool{false, true} {
		b.Run(fmt.Sprint("deepened=", deep), func(b *testing.B) {
			done := make(chan int)
			for b.Loop() {
				if deep {
					Go(func() { done <- down(20) })
				} else {
					go func() { done <- down(20) }()
				}
				<-done
			}
		})
	}
}

func TestGo(t *testing.T) {
	done := make(chan int)
	Go(func() { done <- down(20) })
	if got := <-done; got < 200 {
		t.Errorf("got %d", got)
	}
}
