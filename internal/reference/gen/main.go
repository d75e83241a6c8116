// Command gen writes documents that follow from the code:
//
//	gen pages ROOT DIR                    the pages of docs/reference
//	gen man DIR VERSION DATE              manual pages, with their date (2006-01-02)
//	gen completions BASH ZSH FISH         what the shells read, a directory each
//	gen units DIR PROGRAM                 systemd's units of the relay
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/bawn-dev/bawn/internal/reference"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	verb := fmt.Sprintf("%d ", len(args)) + append(args, "")[0]
	switch verb {
	case "3 pages":
		return reference.WritePages(args[1], args[2])
	case "4 man":
		date, err := time.Parse(time.DateOnly, args[3])
		if err != nil {
			return err
		}
		return reference.WriteMan(args[1], args[2], date)
	case "4 completions":
		return reference.WriteCompletions(args[1], args[2], args[3])
	case "3 units":
		return reference.WriteUnits(args[1], args[2])
	}
	return fmt.Errorf("want pages, man, completions or units with what they take, not %q", args)
}
