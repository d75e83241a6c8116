// Package egressd is what bawnd does.
package egressd

import (
	"errors"
	"fmt"
	"os"
)

// Main runs one command line of bawnd and returns the exit code.
func Main(args, environ []string) int {
	if len(args) == 1 && args[0] == "egress" {
		if err := serveEgress(environ); err != nil {
			if !errors.As(err, new(told)) {
				fmt.Fprintf(os.Stderr, "bawnd: error: %v\n", err)
			}
			return 125
		}
		return 0
	}
	fmt.Fprintln(os.Stderr, "bawnd: error: this program is started by bawn\nbawnd: hint: see \"bawn --help\"")
	return 2
}
