// Command attack tries twenty things that a hostile agent would, with and without Bawn,
// and prints a table of what came of each.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	bawn := flag.String("bawn", "bawn", "the `program` to try")
	flag.Parse()
	path, err := exec.LookPath(*bawn)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	}
	rows, err := tryAll(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	}
	info, err := os.Stdout.Stat()
	colours := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
	if !table(os.Stdout, rows, colours) {
		os.Exit(1)
	}
}

// table prints the rows and reports whether each attack worked without Bawn and not
// with it.
func table(w io.Writer, rows []row, colours bool) bool {
	red, green, plain := "", "", ""
	if colours {
		red, green, plain = "\x1b[31m", "\x1b[32m", "\x1b[0m"
	}
	fmt.Fprintf(w, "\n      %-46s %-16s %s\n\n", "a hostile agent tries to …", "without Bawn", "with Bawn")
	good, stopped := true, 0
	for i, r := range rows {
		fmt.Fprintf(w, "  %2d  %-46s ", i+1, r.what)
		if r.without {
			fmt.Fprintf(w, "%s%-16s%s ", red, "done", plain)
		} else {
			good = false
			fmt.Fprintf(w, "%-16s ", "failed")
		}
		if r.with {
			good = false
			fmt.Fprintf(w, "%sdone%s\n", red, plain)
			continue
		}
		stopped++
		fmt.Fprintf(w, "%s%s%s\n", green, r.how, plain)
	}
	fmt.Fprintf(w, "\n  %d of %d stopped\n\n", stopped, len(rows))
	return good
}
