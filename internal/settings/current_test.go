package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A fixture is a home with a project, and the rules of a session in it.
type fixture struct {
	t     *testing.T
	home  string
	rules *CurrentRules
	now   time.Time
	notes []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	d := &fixture{t: t, home: t.TempDir(), now: time.Unix(1e9, 0)}
	w := &verb.World{Environ: []string{"HOME=" + d.home}}
	d.rules = NewCurrentRules(w, filepath.Join(d.home, "project"), func(text string) { d.notes = append(d.notes, text) })
	d.rules.files = d.rules.files[1:] // the machine's are not this test's to write
	d.rules.now = func() time.Time { return d.now }
	return d
}

const (
	users    = ".config/bawn/policy.toml"
	projects = "project/.bawn/policy.toml"
)

// put replaces a file; a rule is a verdict and a pattern.
func (d *fixture) put(name string, rules ...string) {
	d.t.Helper()
	text := ""
	for _, r := range rules {
		verdict, pattern, ok := strings.Cut(r, " ")
		if !ok {
			text += r + "\n"
			continue
		}
		text += "[[rule]]\nkind = \"command\"\nverdict = \"" + verdict + "\"\npattern = \"" + pattern + "\"\n"
	}
	file := filepath.Join(d.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		d.t.Fatal(err)
	}
}

// are wants these rules in force.
func (d *fixture) are(want ...string) {
	d.t.Helper()
	rules, err := d.rules.Written()
	if err != nil {
		d.t.Fatal(err)
	}
	var got []string
	for _, r := range rules {
		got = append(got, r.Verdict.String()+" "+r.Pattern)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.t.Errorf("in force: %q; want %q", got, want)
	}
}

// What is added holds at once. What is loosened holds once the file has been as it is
// for a while, and permissions end at once.
func TestRulesAsTheyAreNow(t *testing.T) {
	d := newFixture(t)
	d.put(users, "deny id", "allow make")
	d.are("deny id", "allow make")
	same, _ := d.rules.Written()
	if again, _ := d.rules.Written(); &again[0] != &same[0] {
		t.Error("without a change the rules are another slice")
	}
	d.put(users, "deny id", "allow make", "deny curl *")
	d.are("deny id", "allow make", "deny curl *")
	d.now = d.now.Add(settling)
	d.are("deny id", "allow make", "deny curl *")
	d.put(users) // as an editor truncates a file before it writes it
	d.are("deny id", "deny curl *")
	if !d.rules.Settling() {
		t.Error("what holds for a while only is not said to")
	}
	d.put(users, "deny id")
	d.are("deny id", "deny curl *")
	d.now = d.now.Add(settling)
	d.are("deny id")
	if err := os.Remove(filepath.Join(d.home, users)); err != nil {
		t.Fatal(err)
	}
	d.are("deny id")
	d.now = d.now.Add(settling)
	d.are()
	if len(d.notes) > 0 || d.rules.Settling() {
		t.Errorf("noted %q", d.notes)
	}
}

// A file that can't be read changes nothing, and the user is told once of each mistake.
func TestBrokenRulesKeepTheOld(t *testing.T) {
	d := newFixture(t)
	d.put(users, "deny id")
	d.put(projects, "deny make")
	d.are("deny id", "deny make")
	for range 3 {
		d.put(users, "[[rule]")
		d.are("deny id", "deny make")
	}
	if len(d.notes) != 1 || !strings.Contains(d.notes[0], users) || strings.Contains(d.notes[0], "\n") {
		t.Errorf("noted %q; want one line, once, with the file's name", d.notes)
	}
	d.put(users, "deny id")
	d.put(projects, "allow id") // which no project may
	d.are("deny id", "deny make")
	if len(d.notes) != 2 {
		t.Errorf("noted %q; want the second mistake, too", d.notes)
	}
	d.put(users, "deny ls")
	d.are("deny id", "deny make")
	d.put(projects, "deny make")
	d.are("deny id", "deny make", "deny ls")
	d.now = d.now.Add(settling)
	d.are("deny make", "deny ls")
	first := newFixture(t)
	first.put(users, "[[rule]")
	if rules, err := first.rules.Written(); err == nil {
		t.Errorf("a session starts with half of the rules: %v", rules)
	}
}

// What a project said at the start of a session holds to its end; what it adds holds
// as long as it says so.
func TestProjectsOnlyTighten(t *testing.T) {
	d := newFixture(t)
	d.put(projects, "deny id")
	d.are("deny id")
	d.put(projects, "ask make")
	d.are("deny id", "ask make")
	d.now = d.now.Add(settling)
	d.are("deny id", "ask make")
	d.put(projects)
	d.are("deny id", "ask make")
	d.now = d.now.Add(settling)
	d.are("deny id")
}

// Rules besides the files stay.
func TestRulesBesides(t *testing.T) {
	d := newFixture(t)
	d.rules.more = []bawn.Rule{{ID: "plugin", Kind: bawn.Command, Pattern: "x", Verdict: bawn.Deny, Source: bawn.Project}}
	d.are("deny x")
	d.put(users, "deny id")
	d.are("deny x", "deny id")
}
