// Package stack gives a goroutine that begins the stack that it will need.
package stack

// depth is about how much stack a decision, its record or a connection comes to
// use, in bytes.
const depth = 7 << 10

// Go calls f on a goroutine of its own, one that will call deep down. The
// runtime begins with 2 KiB, and doubles a stack that is too small by copying
// it, frame by frame: once while there are two frames costs next to nothing,
// two or three times below a dozen was a fifth of what it takes to decide and
// record, and a sixteenth of all the work for a connection.
func Go(f func()) {
	go func() {
		deepen()
		f()
	}()
}

//go:noinline
func deepen() {
	var room [depth]byte
	keep(&room)
}

//go:noinline
func keep(*[depth]byte) {}
