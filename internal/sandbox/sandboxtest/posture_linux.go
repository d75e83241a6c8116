package sandboxtest

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// Posture returns what the victim observes of itself, with what depends on
// the fixtures replaced by names such as $BASE.
func Posture(t testing.TB, run Runner, f *Fixtures) probe.Posture {
	t.Helper()
	looking := *f
	looking.trusting = true // else every sandbox's namespaces are new
	r := run(t, &looking, f.Victim, "-world", f.arg(), "posture")
	if r.Code != 0 {
		t.Fatalf("victim posture: exit code %d: %.1000s", r.Code, r.Stderr)
	}
	text := strings.ReplaceAll(r.Stdout, f.Base, "$BASE")
	var p probe.Posture
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("victim posture: %v in %.1000s", err, text)
	}
	own := func(ids []string, id int) {
		for i := range ids {
			if ids[i] == strconv.Itoa(id) {
				ids[i] = "$OWNER"
			}
		}
	}
	own(p.UID, f.UID)
	own(p.GID, f.GID)
	own(p.Groups, f.GID)
	// Whether the own group is among them is the login's business.
	p.Groups = slices.DeleteFunc(p.Groups, func(g string) bool { return g == "$OWNER" })
	// So is whether its lists of users lack the guest, which then sees others.
	p.Mounts = slices.DeleteFunc(p.Mounts, func(m string) bool { return strings.HasPrefix(m, "/run/bawn/users/") })
	slices.Sort(p.Mounts)
	return p
}

// CheckPosture compares the posture inside with a golden file. The file is
// written where the test binary has a flag -update that is set.
func CheckPosture(t testing.TB, run Runner, f *Fixtures, golden string) {
	t.Helper()
	got, err := json.MarshalIndent(Posture(t, run, f), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if u := flag.Lookup("update"); u != nil && u.Value.String() == "true" {
		check(t, os.MkdirAll(filepath.Dir(golden), 0o755))
		check(t, os.WriteFile(golden, got, 0o644))
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; run the test with -update and look at what it writes", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("posture differs from %s (-want +got):\n%s", golden, diff)
	}
}
