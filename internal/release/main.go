// Command release writes what accompanies a release. scripts/dist calls it:
//
//	release changelog VERSION DATE markdown|debian TREE  CHANGELOG.md with the fragments in changelog/unreleased
//	release collect VERSION DATE TREE                    writes that into CHANGELOG.md and removes the fragments
//	release licences GOROOT                              the licences of modules, read as "PATH VERSION DIR" from standard input
//	release documents VERSION SECONDS COMMIT OUT DIR...  checksums, bill of materials, provenance, formula and Nix
//	                                                     expression of what is in OUT, for the programs in the directories
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	verb := append(args, "")[0]
	switch {
	case verb == "changelog" && len(args) == 5:
		return writeChangelog(os.Stdout, args[1], args[2], args[3], args[4])
	case verb == "collect" && len(args) == 4:
		return collect(args[1], args[2], args[3])
	case verb == "licences" && len(args) == 2:
		return writeLicences(os.Stdout, os.Stdin, args[1])
	case verb == "documents" && len(args) > 5:
		seconds, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return fmt.Errorf("the date %q is no number of seconds", args[2])
		}
		return writeDocuments(release{version: args[1], date: time.Unix(seconds, 0).UTC(), commit: args[3], out: args[4]}, args[5:])
	}
	return fmt.Errorf("want changelog, collect, licences or documents with what they take, not %q", args)
}
