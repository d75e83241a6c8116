//go:build !linux

// Command victim performs single operations that a sandbox must refuse. Its
// checks are Linux system calls.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "victim: unsupported: the checks are Linux system calls")
	os.Exit(2)
}
