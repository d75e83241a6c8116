package p10_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// shownAt is where a guest is shown sockets.
const shownAt = "/run/bawn/"

// TestSocketsAreNotEnough has a guest that may connect to all sockets there are,
// as no session's may. Its supervisor connects in its stead and has the
// credentials of the user's own programs: that it is a supervisor, and the keys,
// are what is left. With the keys in its hands too it is a host, which may ask,
// and answers nothing but what it has asked.
func TestSocketsAreNotEnough(t *testing.T) {
	t.Parallel()
	r := newAccount(t, false)
	r.serve()
	v := r.victim()
	sockets := map[string]string{"attach.sock": v.place + "/attach.sock"}
	deeds := []deed{{"look at the terminal", []string{"attach", shownAt}}}
	for name, verb := range map[string]string{"relay.sock": "api", "hosts.sock": "host"} {
		sockets[name] = filepath.Join(r.places, "run/bawn", name)
		deeds = append(deeds, deed{"list at " + name, []string{verb, shownAt + name}}, deed{"approve at " + name, []string{verb, shownAt + name, v.question}})
	}
	before := map[string]int{} // who only looks whether a relay listens may be gone before it is looked at
	for name := range sockets {
		before[name] = r.recorded(r.places, "builtin:peer-refused", name)
	}
	said := r.shown(sockets, false, deeds)
	r.refused("a guest that is shown sockets", said)
	for name, want := range map[string]int{"relay.sock": 2, "hosts.sock": 2, "attach.sock": 1} {
		if n := r.recorded(r.places, "builtin:peer-refused", name) - before[name]; n != want {
			t.Errorf("%s: %d refusals are recorded, want %d", name, n, want)
		}
	}
	said = r.shown(sockets, true, deeds)
	if got := said["list at hosts.sock"]; !strings.HasPrefix(got, "yes") {
		t.Errorf("control: with the key the guest is no host: %s", got)
	}
	delete(said, "list at hosts.sock")
	r.refused("a guest that is shown sockets and keys", said)
	r.unharmed(v, "api", r.places+"/run/bawn/relay.sock", v.question)
}

// showWord makes the test binary a host that shows its guest what none does.
const showWord = "@show"

// A display is what it shows, and what its guest does.
type display struct {
	Work    string
	Files   []sandbox.File
	Sockets []string
	Argv    []string
}

// shown runs deeds in a sandbox that shows sockets, and their keys. Its host is
// a process of its own.
func (r *account) shown(sockets map[string]string, keys bool, deeds []deed) map[string]string {
	r.Helper()
	file := filepath.Join(r.Work, "deeds")
	d := display{Work: r.Work, Argv: r.Guest(file)}
	for name, source := range sockets {
		d.Files, d.Sockets = append(d.Files, sandbox.File{Source: source, Target: shownAt + name}), append(d.Sockets, shownAt+name)
		if _, err := os.Stat(source + ".key"); keys && err == nil {
			d.Files = append(d.Files, sandbox.File{Source: source + ".key", Target: shownAt + name + ".key"})
		}
	}
	for path, what := range map[string]any{file: deeds, file + ".shown": d} {
		text, err := json.Marshal(what)
		check(r, errors.Join(err, os.WriteFile(path, text, 0o600)))
	}
	got := r.run(r.places, "guest", showWord, file+".shown")
	said := heard(got.Out)
	if len(said) != len(deeds) || got.Code != 0 {
		r.Fatalf("%d of %d deeds were done: %+v", len(said), len(deeds), got)
	}
	return said
}

// show is the host.
func show(file string) error {
	text, err := os.ReadFile(file)
	var d display
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return err
	}
	p := native.New("")
	plan, err := p.Plan(sandbox.Request{
		Session: bawn.Session{ID: "shown", Isolation: bawn.Isolation{Workspace: d.Work, Protect: true, Env: []string{"PATH", "HOME"},
			Mounts: []bawn.Mount{{Path: d.Work, Access: bawn.ReadWrite, Why: "workspace"}}, Resources: bawn.Resources{TmpMB: 64}}},
		Argv: d.Argv, Dir: d.Work, Environ: os.Environ(), Files: d.Files, Sockets: d.Sockets,
	})
	if err != nil {
		return err
	}
	g, err := p.Start(plan, func(d sandbox.Denial) { fmt.Fprintf(os.Stderr, "denied: %+v\n", d) })
	if err != nil {
		return err
	}
	defer g.Close()
	proc, err := g.Exec(sandbox.Command{Argv: d.Argv, Stdio: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	for range proc.Changes() { //nolint:revive // until it has ended
	}
	return nil
}
