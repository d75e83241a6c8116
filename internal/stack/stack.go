// Package stack gives a goroutine that begins the stack that it will need.
package stack

// depth is about how much stack a decision, its record or a connection comes to
// use, in bytes.
const depth = 7 << 10

// Go calls f on a goroutine of its own, one that will call deep down. The
// runtime begins with 2 KiB, and doubles a stack that is too small by copying
// it, frame by frame. With two frames a copy costs almost nothing. Two or three
// copies below a dozen frames took a fifth of the time to decide and record,
// and a sixteenth of all the work for a connection.
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
