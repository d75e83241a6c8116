package undo_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// copyNames are what guest and human write: a name is always a file or always a directory.
var copyNames = []string{"a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "f/a", "f/g/a"}

// changes draws a script that writes and removes files and directories.
func changes(r *rand.Rand, who string) string {
	var b strings.Builder
	for i := range 4 + r.IntN(10) {
		n := copyNames[r.IntN(len(copyNames))]
		dir := filepath.Dir(n)
		switch op := r.IntN(12); {
		case op < 5:
			fmt.Fprintf(&b, "mkdir -p %s; rm -f %s; echo %s-%d >%[2]s\n", dir, n, who, i)
		case op < 7:
			fmt.Fprintf(&b, "test -e %s && echo %s-%d >%[1]s\n", n, who, i)
		case op < 9:
			fmt.Fprintf(&b, "rm -f %s\n", n)
		case who == "human" || dir == ".":
		case op == 9:
			fmt.Fprintf(&b, "rm -rf %s\n", dir)
		case op == 10:
			fmt.Fprintf(&b, "rm -rf %s; mkdir -p %[1]s; echo %s-%d >%s\n", dir, who, i, n)
		default:
			fmt.Fprintf(&b, "test -d %s && mv %[1]s moved && mkdir -p %s && mv moved %[1]s\n", dir, filepath.Dir(dir))
		}
	}
	return b.String() + "true\n"
}

// contents reads the files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	testhome.Check(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		m[rel] = string(b)
		return err
	}))
	return m
}

// TestCopyModel has guests change copies on the kernel's own overlay, and a human the
// workspace meanwhile. The guest sees what it would see without a copy. What it alone has
// changed arrives, also where an apply is killed before; the rest stays the human's, and an
// undo brings all of that back.
func TestCopyModel(t *testing.T) { onCopies(t, copyModel) }

func copyModel(t *testing.T, r *onCopy) {
	rounds := 6
	if testenv.Short() {
		rounds = 2
	}
	for round := range rounds {
		seed := uint64(time.Now().UnixNano())
		rnd := rand.New(rand.NewPCG(seed, 0))
		ws, plain := filepath.Join(r.Home, fmt.Sprint("ws", round)), filepath.Join(r.Home, fmt.Sprint("plain", round))
		testhome.Check(t, os.Mkdir(ws, 0o755))
		first, guest, human := changes(rnd, "first"), changes(rnd, "guest"), changes(rnd, "human")
		in := func(dir, script string) string {
			return r.must(t, "sh", "-c", "cd "+dir+" && umask 022 && {\n"+script+"}")
		}
		bawn := func(args string) string { return in(ws, "bawn "+args+"\n") }
		in(ws, first)
		base := contents(t, ws)
		r.must(t, "cp", "-a", ws, plain)
		in(plain, guest)
		theirs := contents(t, plain)

		const show = "find . -type f | sort | xargs -r grep -H .\n"
		saw := r.must(t, "sh", "-c", `cd "$1" && exec `+r.run+`sh -c "umask 022; $2"`, "sh", ws, guest+show)
		if want := in(plain, show); saw != want {
			t.Fatalf("seed %d: the guest sees %q; without a copy %q", seed, saw, want)
		}
		if got := contents(t, ws); !maps.Equal(got, base) {
			t.Fatalf("seed %d: the workspace has changed: %v; was %v", seed, got, base)
		}
		in(ws, human)
		mine := contents(t, ws)
		want := maps.Clone(mine)
		for _, n := range copyNames {
			b, inBase := base[n]
			g, inGuest := theirs[n]
			m, inMine := mine[n]
			if inBase == inMine && b == m && (g != b || inGuest != inBase) {
				if delete(want, n); inGuest {
					want[n] = g
				}
			}
		}
		if len(theirs) == len(base) && maps.Equal(theirs, base) {
			continue // without changes there is no copy
		}
		in(ws, fmt.Sprintf("timeout -s KILL 0.%03d bawn apply p --yes >/dev/null 2>&1\ntrue\n", rnd.IntN(150)))
		bawn("apply p --yes")
		if got := contents(t, ws); !maps.Equal(got, want) {
			t.Fatalf("seed %d: base %v, guest %v, human %v: %v; want %v", seed, base, theirs, mine, got, want)
		}
		if !strings.Contains(bawn("apply p --yes"), "nothing to take over") {
			t.Fatalf("seed %d: another apply does something", seed)
		}
		bawn("discard p --yes")
	}
}
