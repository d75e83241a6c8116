// Command bawn-egress is the relay of one session's network and nothing else:
// "bawnd egress" in a third of its size. Each session with a network waits for
// its relay to start, and a program pays at each start for all that it links.
// bawn starts it where it lies beside it, and otherwise bawnd.
package main

import (
	"os"

	"github.com/bawn-dev/bawn/internal/egressd"
)

func main() { os.Exit(egressd.Main(os.Args[1:], os.Environ())) }
