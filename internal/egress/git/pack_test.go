package git_test

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/egress/git"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// history makes a repository of 40 commits with long, similar messages, which
// git packs as deltas of each other, and merges.
func history(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "git")
	dir := t.TempDir()
	run(t, dir, "init", "--quiet", "--initial-branch=main")
	var in bytes.Buffer
	for i := range 40 {
		message := strings.Repeat("The same words again and again, in every message.\n", 40) + fmt.Sprint(i)
		fmt.Fprintf(&in, "commit refs/heads/main\nmark :%d\ncommitter a <a@example.com> %d +0000\ndata %d\n%s\n", i+1, 1700000000+i, len(message), message)
		if i%10 == 9 {
			fmt.Fprintf(&in, "merge :%d\n", i-4)
		}
		fmt.Fprintf(&in, "M 644 inline file\ndata 2\n%02d\n", i)
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = dir, &in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fast-import: %v, %s", err, out)
	}
	run(t, dir, "repack", "-adfq", "--window=50", "--depth=50")
	return dir
}

// TestPacksOfGit: in packs as git makes them, with and without offsets and
// thin, every commit's ancestors are found, and nothing else's.
func TestPacksOfGit(t *testing.T) {
	dir := history(t)
	id := func(rev string) string { return strings.TrimSpace(run(t, dir, "rev-parse", rev)) }
	for _, flags := range [][]string{{"--delta-base-offset"}, {}, {"--thin", "--delta-base-offset"}, {"--no-reuse-delta", "--window=50"}} {
		pack := packObjects(t, dir, "main\n^main~30\n", append(flags, "--revs", "--stdout")...)
		if commitDeltas(t, dir, pack) == 0 {
			t.Errorf("%q: no commit of the pack is a delta: the test tests nothing", flags)
		}
		for _, tt := range []struct {
			old, new string
			want     bool
		}{
			{"main~30", "main", true}, {"main~30", "main~29", true}, {"main~10", "main", true}, {"main~12", "main~11", true},
			{"main", "main~1", false}, {"main~33", "main", false}, {"main~5", "main~6", false},
		} {
			head := fmt.Sprintf("%s %s refs/heads/x\x00report-status", id(tt.old), id(tt.new))
			body := fmt.Sprintf("%04x%s0000%s", len(head)+4, head, pack)
			op, again, err := git.Inspector{Dir: t.TempDir()}.Push(git.Operation{}, strings.NewReader(body))
			if err != nil {
				t.Fatalf("%q, %s..%s: %v", flags, tt.old, tt.new, err)
			}
			if got := op.Updates[0].FastForward; got != tt.want {
				t.Errorf("%q, %s..%s: fast-forward %v (%s), want %v", flags, tt.old, tt.new, got, op.Updates[0].Why, tt.want)
			}
			if got, err := io.ReadAll(again); err != nil || string(got) != body {
				t.Errorf("the replay differs: %v", err)
			}
			again.Close()
		}
	}
}

func packObjects(t *testing.T, dir, revs string, flags ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"pack-objects", "-q"}, flags...)...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(revs)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pack-objects: %v", err)
	}
	return string(out)
}

// commitDeltas asks git how many commits of a pack are deltas.
func commitDeltas(t *testing.T, dir, pack string) int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.pack")
	cmd := exec.Command("git", "index-pack", "--stdin", "--fix-thin", file)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(pack)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("index-pack: %v, %s", err, out)
	}
	n := 0
	for line := range strings.SplitSeq(run(t, dir, "verify-pack", "-v", file), "\n") {
		if f := strings.Fields(line); len(f) == 7 && f[1] == "commit" {
			n++
		}
	}
	return n
}
