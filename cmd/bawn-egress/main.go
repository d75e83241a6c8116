// Command bawn-egress is the relay of one session's network and nothing else:
// "bawnd egress" in a third of its size. Each session with a network waits for
// this program to start, and every linked package adds to its start. bawn
// starts it where it lies beside bawn, and bawnd otherwise.
package main

import (
	"os"

	"github.com/bawn-dev/bawn/internal/egressd"
)

func main() { os.Exit(egressd.Main(os.Args[1:], os.Environ())) }
