package p10_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// An attack is a list of steps that guests try. In the controls the same steps run outside.
// Answering would end the victim's wait, so the control of an answer is the user's own.
type attack struct {
	deed
	// control is what shows, from outside, that the way is there; nil is the
	// deed itself.
	control []string
	// shown says that the way stays where Bawn's places lie in the workspace of
	// somebody whose Bawn knows nothing of them: a second wall must hold then.
	shown bool
}

// attacks are all that the victim and its relay have to fear.
func (r *account) attacks(v victim) []attack {
	run, state, config := r.places+"/run/bawn/", r.places+"/state/bawn/", r.places+"/config/bawn/"
	self := func(name string, words ...string) attack { return attack{deed: deed{name, words}} }
	shown := func(control []string, name string, words ...string) attack {
		return attack{deed{name, words}, control, true}
	}
	bawnd := r.Bin + "/bawnd"
	return []attack{
		shown(nil, "list at the relay's API", "api", run+"relay.sock"),
		shown([]string{"api", run + "relay.sock"}, "approve at the relay's API", "api", run+"relay.sock", v.question),
		shown(nil, "speak as a host", "host", run+"hosts.sock"),
		shown([]string{"host", run + "hosts.sock"}, "approve as a host", "host", run+"hosts.sock", v.question),
		shown(nil, "look at the terminal", "attach", v.place),
		shown([]string{"exec", bawnd, "approvals", "--json"}, "approve by the program", "exec", bawnd, "approve", v.question, "--always"),
		shown([]string{"exec", bawnd, "pair", "--list"}, "pair a device", "exec", bawnd, "pair", "--json"),
		{deed{"reach the page", []string{"fetch", r.port}}, nil, true},
		{deed{"approve at the page", []string{"answer", r.port, v.question}}, []string{"fetch", r.port}, true},
		{deed{"signal the relay", []string{"signal", strconv.Itoa(r.relay)}}, nil, true},
		{deed{"signal the host", []string{"signal", strconv.Itoa(v.host)}}, nil, true},
		{deed{"see the relay", []string{"see", "--listen"}}, nil, true},
		{deed{"take the terminal", []string{"open", v.terminal(r)}}, nil, true},
		self("read the policy", "read", config+"policy.toml"),
		self("change the policy", "put", config+"policy.toml"),
		{deed{"make rules of answers", []string{"put", state + "approved-rules.toml"}}, []string{"put", state + "beside"}, false},
		self("read the relay's state", "read", state+"relay.db"),
		self("change the relay's state", "put", state+"relay.db"),
		self("free the relay's lock", "put", state+"relay.lock"),
		self("read the page's authority", "read", state+"web-ca-localhost.pem"),
		self("read a socket's key", "read", run+"relay.sock.key"),
		self("read the session's key", "read", v.place+"/attach.sock.key"),
		self("read what was shown", "read", v.place+"/output.log"),
		self("rewrite the registry", "put", v.place+"/session.json"),
	}
}

// from runs deeds in a zone and returns the result of each.
func (r *account) from(zone, places string, flags []string, deeds []deed) map[string]string {
	r.Helper()
	text, err := json.Marshal(deeds)
	check(r, err)
	file := filepath.Join(r.Work, "deeds")
	check(r, os.WriteFile(file, text, 0o600))
	words := r.Guest(file)
	argv := append([]string{"bawn", "run", "--mode", "permissive"}, flags...)
	switch zone {
	case "outside":
		argv = []string{"guest"}
		words = words[1:]
	case "agent":
		argv = append(argv, "--split", "--")
	case "command":
		argv = append(argv, "--split", "--")
		words = []string{"/bin/sh", "-c", strings.Join(words, " ")}
	default:
		argv = append(argv, "--")
	}
	got := r.run(places, append(argv, words...)...)
	said := heard(got.Out)
	if len(said) != len(deeds) {
		r.Fatalf("%s: %d of %d deeds were done: %+v", zone, len(said), len(deeds), got)
	}
	return said
}

// heard returns the result of each deed from a guest's output.
func heard(out string) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.SplitN(strings.TrimSpace(line), "\t", 3); len(f) == 3 {
			said[f[1]] = f[0] + " " + f[2]
		}
	}
	return said
}

// controls do from outside what shows that each attack has a way.
func (r *account) controls(all []attack) {
	r.Helper()
	var deeds []deed
	for _, a := range all {
		if a.control == nil {
			a.control = a.Words
		}
		deeds = append(deeds, deed{a.Name, a.control})
	}
	for name, said := range r.from("outside", r.places, nil, deeds) {
		if !strings.HasPrefix(said, "yes") {
			r.Errorf("control: %s: %s", name, said)
		}
	}
}

// unharmed wants the relay alive, and the victim to wait until its human says
// yes, from outside, in the words with which the guests have tried it.
func (r *account) unharmed(v victim, words ...string) {
	r.Helper()
	if err := syscall.Kill(r.relay, 0); err != nil {
		r.Errorf("the relay: %v", err)
	}
	if out := r.run(r.places, "bawn", "approvals", "--json").Out; !strings.Contains(out, v.question) || !strings.Contains(out, `"pending"`) {
		r.Errorf("the question waits no more: %s", out)
	}
	if _, err := os.Lstat(v.file); err == nil {
		r.Error("what nobody has approved was executed")
	}
	if said := r.from("outside", r.places, nil, []deed{{"answer", words}}); !strings.HasPrefix(said["answer"], "yes") {
		r.Errorf("control: the human's answer: %q", said)
	}
	r.until("what the human has approved", func() bool { _, err := os.Lstat(v.file); return err == nil })
	if got := r.run(r.places, "bawn", "audit", "verify"); got.Code != 0 {
		r.Errorf("the log: %+v", got)
	}
}

// refused wants none of the attacks to succeed.
func (r *account) refused(zone string, said map[string]string) {
	r.Helper()
	for name, s := range said {
		if !strings.HasPrefix(s, "no") {
			r.Errorf("%s could %s: %s", zone, name, s)
		}
	}
}

func deedsOf(all []attack, want func(attack) bool) (deeds []deed) {
	for _, a := range all {
		if want(a) {
			deeds = append(deeds, a.deed)
		}
	}
	return deeds
}

var zones = []string{"agent", "command", "plain"}

// TestFromInside attacks from every zone, with Bawn's places where they usually
// are, and in the workspace.
func TestFromInside(t *testing.T) {
	for name, inWorkspace := range map[string]bool{"usual places": false, "places in the workspace": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAccount(t, inWorkspace)
			r.serve()
			v := r.victim()
			all := r.attacks(v)
			r.controls(all)
			for _, zone := range zones {
				r.refused(zone, r.from(zone, r.places, []string{"--net", "none"}, deedsOf(all, func(attack) bool { return true })))
			}
			r.unharmed(v, "api", r.places+"/run/bawn/relay.sock", v.question)
		})
	}
}

// TestShownByMistake attacks from sessions whose Bawn has other places, so that
// it hides none of those that lie in the workspace, sockets and keys. Files are
// open then; sockets are not, and each try is recorded.
func TestShownByMistake(t *testing.T) {
	t.Parallel()
	r := newAccount(t, true)
	r.serve()
	v := r.victim()
	all := r.attacks(v)
	other := r.elsewhere()
	for _, zone := range zones {
		said := r.from(zone, other, []string{"--net", "none", "--rw", r.places}, deedsOf(all, func(a attack) bool { return a.shown }))
		r.refused(zone, said)
		said = r.from(zone, other, []string{"--net", "none", "--rw", r.places}, []deed{{"read a key", []string{"read", r.places + "/run/bawn/relay.sock.key"}}})
		if !strings.HasPrefix(said["read a key"], "yes") {
			t.Errorf("control: %s sees nothing: %q", zone, said)
		}
	}
	for _, socket := range []string{"relay.sock", "hosts.sock", "attach.sock"} {
		if n := r.recorded(other, "sockets:host", socket); n < len(zones) {
			t.Errorf("%s: %d refusals are recorded, want one of each zone", socket, n)
		}
	}
	r.unharmed(v, "api", r.places+"/run/bawn/relay.sock", v.question)
}

// TestPageFromInside gives each zone the page's port, as somebody may who works
// on a web site: it is reached, and lets nobody in.
func TestPageFromInside(t *testing.T) {
	t.Parallel()
	r := newAccount(t, false)
	r.serve()
	v := r.victim()
	deeds := []deed{{"reach", []string{"fetch", r.port}}, {"approve", []string{"answer", r.port, v.question}}}
	flag := map[string]string{"agent": "--model", "command": "--host-port", "plain": "--host-port"}
	for i, zone := range zones {
		said := r.from(zone, r.places, []string{flag[zone], r.port}, deeds)
		if !strings.HasPrefix(said["reach"], "yes") || !strings.HasPrefix(said["approve"], "no") || !strings.Contains(said["approve"], "401") {
			t.Errorf("%s: %q", zone, said)
		}
		if n := r.recorded(r.places, "builtin:relay", "ApprovalService/Answer"); n != i+1 {
			t.Errorf("%s: %d refusals are recorded, want %d", zone, n, i+1)
		}
	}
	r.unharmed(v, "exec", r.Bin+"/bawnd", "approve", v.question)
}
