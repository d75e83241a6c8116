package dockerapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The trial says of an engine what the attack itself shows. That replaces /dev/null by a
// link to a setting of the container's own UTS namespace, which is harmless: the program's
// output becomes that file.
func TestTrial(t *testing.T) {
	r := newRig(t, nil)
	cache := filepath.Join(t.TempDir(), "cache", "trial")
	ofTrials := func() string { // containers and images without a name
		_, containers := r.direct("GET", `/containers/json?all=1&filters={"name":["bawn-trial"]}`, nil)
		_, images := r.direct("GET", `/images/json?filters={"dangling":["true"]}`, nil)
		return string(containers) + string(images)
	}
	before := ofTrials()
	began := time.Now()
	f := Trial(t.Context(), r.engine.Socket, cache)
	took := time.Since(began)
	if f.Untried != "" {
		t.Fatal(f)
	}
	seed := dict{"Image": busybox, "Cmd": []string{"sh", "-c", "ln -s /proc/sys/kernel/domainname /a/null; ln -s /dev /b/dev"},
		"HostConfig": dict{"Binds": []string{"bawn-t-null:/a", "bawn-t-link:/b"}, "NetworkMode": "none"}}
	r.control(seed)
	defer r.direct("DELETE", "/volumes/bawn-t-null", nil)
	defer r.direct("DELETE", "/volumes/bawn-t-link", nil)
	attack := dict{"Image": busybox, "Cmd": []string{"sh", "-c", `echo bawn-was-here; test "$(cat /proc/sys/kernel/domainname)" = bawn-was-here && : >/out/written`},
		"HostConfig": dict{"Binds": []string{"bawn-t-link:/x", "bawn-t-null:/x/dev", t.TempDir() + ":/out"}, "NetworkMode": "none"}}
	out := strings.TrimSuffix(attack["HostConfig"].(dict)["Binds"].([]string)[2], ":/out")
	r.attempt(attack)
	_, err := os.Stat(filepath.Join(out, "written"))
	if escapes := err == nil; escapes != f.Escapes {
		t.Errorf("the attack succeeds: %v; the trial says: %s", escapes, f)
	}
	began = time.Now()
	if again := Trial(t.Context(), r.engine.Socket, cache); again != f {
		t.Errorf("kept was %+v; want %+v", again, f)
	}
	t.Logf("%s; tried in %v, known in %v", f, took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if left := ofTrials(); left != before {
		t.Errorf("left behind: %s; there was %s", left, before)
	}
}

// attempt runs a container at the engine itself, which may not start it.
func (r *rig) attempt(body dict) {
	r.t.Helper()
	id := r.directly("POST", "/containers/create", body)
	defer r.direct("DELETE", "/containers/"+id+"?force=1&v=1", nil)
	r.direct("POST", "/containers/"+id+"/start", nil)
	r.direct("POST", "/containers/"+id+"/wait", nil)
}

// What was found of another engine, another boot, or is no finding, counts for
// nothing; and an engine that can't be asked is not safe.
func TestTrialIsNotKnown(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "trial")
	f := Finding{Engine: "x"}
	keep(cache, "a", f)
	if got := recall(cache, "a"); got == nil || *got != f {
		t.Errorf("kept was %v", got)
	}
	if recall(cache, "b") != nil || recall("", "a") != nil {
		t.Error("another engine's finding was taken")
	}
	if err := os.WriteFile(cache, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if recall(cache, "a") != nil {
		t.Error("half a record was taken")
	}
	if f := Trial(t.Context(), filepath.Join(t.TempDir(), "none"), ""); f.Safe() || f.Untried == "" {
		t.Errorf("an engine that is not there: %+v", f)
	}
	if _, err := canary("riscv64"); err == nil {
		t.Error("a program for another architecture")
	}
}
