// Command attack tries twenty things that a hostile agent would, with and without Bawn,
// and prints a table of what came of each. -also tries them in another sandbox too.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	bawn := flag.String("bawn", "bawn", "the `program` to try")
	var others []sandbox
	flag.Func("also", "`name=words` of another sandbox, as \"srt=srt --settings srt.json\"; {HOME} and {PROJECT} stand for the scratch home and its project (repeatable)", func(text string) error {
		name, words, ok := strings.Cut(text, "=")
		if !ok || name == "" || strings.TrimSpace(words) == "" {
			return fmt.Errorf("want NAME=WORDS")
		}
		others = append(others, sandbox{name: name, words: strings.Fields(words)})
		return nil
	})
	flag.Parse()
	path, err := exec.LookPath(*bawn)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	}
	in := append([]sandbox{{name: "without Bawn"}, withBawn(path)}, others...)
	rows, err := tryAll(in)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	}
	info, err := os.Stdout.Stat()
	colours := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
	if !table(os.Stdout, in, rows, colours) {
		os.Exit(1)
	}
}

// table prints the rows and reports whether each attack worked in the first column, without
// a sandbox, and not in the second, with Bawn.
func table(w io.Writer, in []sandbox, rows []row, colours bool) bool {
	const column = "%s%-16s%s"
	red, green, plain := "", "", ""
	if colours {
		red, green, plain = "\x1b[31m", "\x1b[32m", "\x1b[0m"
	}
	fmt.Fprintf(w, "\n      %-46s ", "a hostile agent tries to …")
	for _, s := range in {
		fmt.Fprintf(w, column, "", s.name, "")
	}
	fmt.Fprint(w, "\n\n")
	good, stopped := true, make([]int, len(in))
	for i, r := range rows {
		fmt.Fprintf(w, "  %2d  %-46s ", i+1, r.what)
		for j, worked := range r.worked {
			switch {
			case worked:
				fmt.Fprintf(w, column, red, "done", plain)
			case j == 0:
				fmt.Fprintf(w, column, "", "failed", "")
			case j == 1 && r.undone:
				fmt.Fprintf(w, column, green, "taken back", plain)
			default:
				fmt.Fprintf(w, column, green, "stopped", plain)
			}
			if !worked {
				stopped[j]++
			}
		}
		fmt.Fprintln(w)
		good = good && r.worked[0] && !r.worked[1]
	}
	fmt.Fprintf(w, "\n  %d of %d stopped", stopped[1], len(rows))
	for j := range in[min(2, len(in)):] {
		fmt.Fprintf(w, ", %s: %d", in[j+2].name, stopped[j+2])
	}
	fmt.Fprint(w, "\n\n")
	return good
}
