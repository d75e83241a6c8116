package dockerapi

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	testengine "github.com/bawn-dev/bawn/internal/testenv/engine"
)

// writes has the session's guest write what containers change, within its walls.
func writes(r *rig, o *Options) {
	o.Session.Isolation.Protect = true
	writesAll(r, o)
}

// writesAll is writes for a session that protects no names.
func writesAll(r *rig, o *Options) {
	withGuest(r, o)
	o.Write = WriteBy(r.guest, writerInside)
}

const writerInside = "/run/bawn/bawn"

// file makes a file of the workspace.
func (r *rig) file(name, text string) {
	r.t.Helper()
	at := filepath.Join(r.workspace, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// has wants a file of the workspace, "" for none.
func (r *rig) has(name, want string) {
	r.t.Helper()
	got, err := os.ReadFile(filepath.Join(r.workspace, name))
	if want == "" && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil || string(got) != want {
		r.t.Errorf("%s is %q, %v; want %q", name, got, err, want)
	}
}

// What a container writes is in the workspace when "docker run" returns.
func TestContainersWrite(t *testing.T) {
	r := newRig(t, writes)
	r.file("kept", "kept")
	r.file("changed", "old")
	r.file("gone", "gone")
	r.file("large", strings.Repeat("x", maxHead+1))
	r.file("dir/below", "below")
	out, err := r.docker("run", "--rm", "-v", r.workspace+":/w", "-w", "/w", busybox, "sh", "-c",
		"cat dir/below; echo -n new > changed; rm gone; mkdir -p made/deep; echo -n made > made/deep/file; chmod 755 made/deep/file; ln -s deep/file made/link; ln made/deep/file second")
	if err != nil || out != "below" {
		t.Fatalf("%v: %s", err, out)
	}
	r.has("kept", "kept")
	r.has("changed", "new")
	r.has("gone", "")
	r.has("made/deep/file", "made")
	r.has("made/link", "made")
	r.has("second", "made")
	if st, err := os.Stat(filepath.Join(r.workspace, "made/deep/file")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", st, err)
	}
	if status, answer := r.call("GET", "/containers/json?all=1", nil); status != http.StatusOK || strings.TrimSpace(string(answer)) != "[]" {
		t.Errorf("after --rm: %d %s", status, answer)
	}
}

// evil writes what the host would execute, obey or follow.
const evil = `cd /w
mkdir -p .git/hooks sub/.git/hooks .vscode bare/objects bare/refs
for f in .git/hooks/x sub/.git/hooks/x .envrc sub/.envrc .vscode/tasks.json; do echo evil > $f; chmod 755 $f; done
echo 'ref: refs/heads/main' > bare/HEAD; printf '[core]\nfsmonitor = evil\n' > bare/config
ln -s /root/.ssh absolute; ln -s ../../outside up; ln -s sub/../../outside bent; ln -s .envrc innocent
mkfifo pipe; mknod device c 1 3
cp /bin/busybox suid; chmod 6755 suid; mkdir sgid; chmod 2755 sgid
echo harmless > harmless`

// effects are what evil has brought about in a directory, seen from outside.
func effects(dir string) map[string]bool {
	found := map[string]bool{}
	for _, name := range []string{
		".git/hooks/x", "sub/.git/hooks/x", ".envrc", "sub/.envrc", ".vscode/tasks.json", "absolute", "up", "bent", "innocent", "pipe", "device",
	} {
		_, err := os.Lstat(filepath.Join(dir, name))
		found[name] = err == nil
	}
	names, _ := filepath.Glob(filepath.Join(dir, "bare/*"))
	found["bare"] = len(names) == 4 // a git directory with the attacker's settings
	for _, name := range []string{"suid", "sgid"} {
		st, err := os.Lstat(filepath.Join(dir, name))
		found[name] = err == nil && st.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0
	}
	return found
}

// A hostile container brings nothing into the workspace that its guest could not write.
// Controls are a container of the engine's own with a writable bind, and a session that
// protects no names.
func TestHostileContainerWrites(t *testing.T) {
	control := t.TempDir()
	cmd := exec.Command("docker", "-H", testengine.Shared(t).Host(), "run", "--rm", "-v", control+":/w", busybox, "sh", "-c", evil)
	testengine.Shared(t).Image(t, busybox)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("control: %v: %s", err, out)
	}
	for name, there := range effects(control) {
		if !there {
			t.Errorf("control: an ordinary bind has no %s", name)
		}
	}
	open := newRig(t, writesAll)
	open.attack()
	for _, name := range []string{".git/hooks/x", ".envrc", ".vscode/tasks.json"} {
		if !effects(open.workspace)[name] {
			t.Errorf("control: a session that protects no names has no %s", name)
		}
	}
	r := newRig(t, writes)
	told := r.attack()
	for name, there := range effects(r.workspace) {
		if there {
			t.Errorf("%s is in the workspace", name)
		}
	}
	r.has("harmless", "harmless\n")
	for _, want := range []string{"/w/.envrc", "/w/.git/hooks/x", "/w/absolute", "/w/pipe", "out of the mounted directory"} {
		if !strings.Contains(told, want) {
			t.Errorf("nobody is told of %s:\n%s", want, told)
		}
	}
}

// attack runs a container that writes evil, and returns what the human is told.
func (r *rig) attack() string {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.workspace, ".git/hooks"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if out, err := r.docker("run", "--rm", "-v", r.workspace+":/w", busybox, "sh", "-c", evil); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	return r.told()
}

// told is what the human is told of refusals.
func (r *rig) told() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, n := range r.refused {
		all = append(all, n.What+": "+n.Error())
	}
	return strings.Join(all, "\n")
}

// The engine has no way to the workspace: what it mounts is a volume of its own.
func TestEngineBindsNoWorkspace(t *testing.T) {
	r := newRig(t, writes)
	r.file("file", "text")
	id := r.run("a", dict{"Cmd": []string{"sleep", "1000"}, "HostConfig": dict{"Binds": []string{r.workspace + ":/w"}}})
	_, data := r.direct("GET", "/containers/"+id+"/json", nil)
	var full struct {
		Mounts     []struct{ Type, Source, Destination string }
		HostConfig struct{ Binds []string }
	}
	if err := json.Unmarshal(data, &full); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), r.workspace) {
		t.Errorf("the engine knows the workspace: %s", data)
	}
	for _, m := range full.Mounts {
		if m.Destination == "/w" && m.Type != "volume" {
			t.Errorf("it has %+v", m)
		}
	}
	var shown struct{ Mounts []shownMount }
	r.must("GET", "/containers/a/json", nil, &shown)
	if len(shown.Mounts) != 1 || shown.Mounts[0].Type != "bind" || shown.Mounts[0].Source != r.workspace || !shown.Mounts[0].RW {
		t.Errorf("the guest is shown %+v", shown.Mounts)
	}
}

// While a container runs both sides see what the other one writes, and execs at once.
func TestMirrorsWhileAContainerRuns(t *testing.T) {
	r := newRig(t, writes)
	r.file("src", "1")
	r.run("a", dict{"Cmd": []string{"sh", "-c", "echo -n early > /w/early; sleep 1000"}, "HostConfig": dict{"Binds": []string{r.workspace + ":/w"}}})
	testenv.Until(t, "the container's file", func() bool {
		text, _ := os.ReadFile(filepath.Join(r.workspace, "early"))
		return string(text) == "early"
	})
	r.file("src", "2")
	r.file("new/file", "3")
	out, err := r.docker("exec", "a", "sh", "-c", "cat /w/src /w/new/file; echo -n late > /w/late; echo -n theirs > /w/both")
	if err != nil || out != "23" {
		t.Errorf("exec: %v: %q; want what the guest wrote before", err, out)
	}
	r.has("late", "late")
	r.has("both", "theirs")
	r.file("src", "4")
	testenv.Until(t, "the guest's change in the container", func() bool {
		_, tar := r.direct("GET", "/containers/"+r.idOf("a")+"/archive?path=/w/src", nil)
		return strings.Contains(string(tar), "4")
	})
	r.must("POST", "/containers/a/stop?t=0", nil, nil)
	r.file("src", "5")
	r.must("POST", "/containers/a/start", nil, nil)
	if out, err := r.docker("exec", "a", "cat", "/w/src"); err != nil || out != "5" {
		t.Errorf("after a restart: %v: %q", err, out)
	}
	r.must("POST", "/containers/a/stop?t=0", nil, nil)
	r.file("src", "the session's")
	their := filepath.Join(t.TempDir(), "src")
	if err := os.WriteFile(their, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := r.docker("cp", their, "a:/w/src"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.must("POST", "/containers/a/start", nil, nil)
	if out, err := r.docker("exec", "a", "cat", "/w/src"); err != nil || out != "the session's" || !strings.Contains(r.told(), "the session has changed it, too") {
		t.Errorf("changed by both: %v: %q; told %s", err, out, r.told())
	}
	r.has("src", "the session's")
	if out, err := r.docker("exec", "-d", "a", "sh", "-c", "echo -n last > /w/last"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	r.must("DELETE", "/containers/a?force=1", nil, nil)
	r.has("last", "last")
}

func (r *rig) idOf(name string) string {
	r.t.Helper()
	var c struct{ ID string }
	r.must("GET", "/containers/"+name+"/json", nil, &c)
	return c.ID
}

// A container that exchanges directories for links all the time puts nothing where they
// lead, and what it has besides arrives.
func TestMirrorRace(t *testing.T) {
	r := newRig(t, writes)
	outside := t.TempDir()
	if err := os.MkdirAll(filepath.Join(r.workspace, ".git/hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := `cd /w; mkdir real; echo evil > real/x; n=0
while :; do ln -s ` + outside + ` d; rm d; ln -s .git/hooks d; rm d; mkdir d; echo evil > d/x; rm -r d; done &
while :; do mv real moved; ln -s .git/hooks real; echo evil > real/x; rm real; mv moved real; n=$((n+1)); echo $n > c; mv c count; done` // the file is never empty
	r.run("a", dict{"Cmd": []string{"sh", "-c", script}, "HostConfig": dict{"Binds": []string{r.workspace + ":/w"}}})
	for range 4 { // each brings both sides together before and after
		if out, err := r.docker("exec", "a", "true"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	r.must("DELETE", "/containers/a?force=1", nil, nil)
	for _, place := range []string{outside, filepath.Join(r.workspace, ".git/hooks")} {
		if names, err := os.ReadDir(place); err != nil || len(names) > 0 {
			t.Errorf("%s: %v %v", place, names, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(r.workspace, "count")); err != nil || len(text) == 0 {
		t.Errorf("control: nothing has arrived: %q %v", text, err)
	}
}

// Something else may be mounted within a mirror: it is not the mirror's. A link in the
// way, of the guest or the container, is refused.
func TestMountsInMirrors(t *testing.T) {
	r := newRig(t, writes)
	r.file("modules/own", "the guest's")
	body := func() dict {
		return dict{"Cmd": []string{"sh", "-c", "ls /w/modules; echo -n x > /w/modules/theirs; echo -n y > /w/out; sleep 1000"},
			"Volumes": dict{"/w/modules": dict{}}, "HostConfig": dict{"Binds": []string{r.workspace + ":/w:z"}}}
	}
	r.run("a", body())
	testenv.Until(t, "the container's file", func() bool {
		_, err := os.Stat(filepath.Join(r.workspace, "out"))
		return err == nil
	})
	r.has("modules/theirs", "")
	r.has("modules/own", "the guest's")
	if out, err := r.docker("exec", "a", "ls", "/w/modules"); err != nil || out != "theirs" {
		t.Errorf("%v: %q", err, out)
	}
	for name, c := range map[string]struct {
		binds []string
		why   string
	}{"dir": {nil, "is a link in the container"}, "inner": {[]string{r.workspace + "/modules:/w/link/inner"}, "mounted below what is no directory"}} {
		if err := os.Symlink("/proc/self/fd", filepath.Join(r.workspace, "link")); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		var made struct {
			ID string `json:"Id"`
		}
		r.must("POST", "/containers/create?name="+name, dict{"Image": busybox, "WorkingDir": "/w/link", "HostConfig": dict{"Binds": append(c.binds, r.workspace+":/w")}}, &made)
		if status, answer := r.call("POST", "/containers/"+name+"/start", nil); status != http.StatusForbidden || !strings.Contains(string(answer), c.why) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if status, answer := r.call("POST", "/containers/create", dict{"Image": busybox, "HostConfig": dict{"Binds": []string{r.workspace + ":/w:ro", r.workspace + "/modules:/w/modules"}}}); status != http.StatusForbidden {
		t.Errorf("control, within a copy: %d %s", status, answer)
	}
}

// Too much, and what is no directory, is refused with what to do, and nothing waits for
// a container that does not start.
func TestMirrorBounds(t *testing.T) {
	r := newRig(t, writes)
	r.file("file", "text")
	out, err := r.docker("run", "--rm", "-v", filepath.Join(r.workspace, "file")+":/etc/x/file", busybox, "true")
	if err == nil || !strings.Contains(out, "mount it read-only") {
		t.Errorf("a file: %v %s", err, out)
	}
	if out, err = r.docker("run", "--rm", "-v", "/etc:/x/etc", busybox, "true"); err == nil || !strings.Contains(out, "outside of the workspace") {
		t.Errorf("/etc: %v %s", err, out)
	}
	r.broker.store.most = load{4, 1 << 20}
	if out, err = r.docker("run", "--rm", "-v", r.tree("dir", 9)+":/w", busybox, "true"); err == nil || !strings.Contains(out, RuleLimit) {
		t.Errorf("much: %v %s", err, out)
	}
	if out, err := r.docker("ps", "-aq"); err != nil || out != "" {
		t.Errorf("left: %v %s", err, out)
	}
	if used := r.broker.store.used; used != (load{}) {
		t.Errorf("%+v is used when no container is left", used)
	}
}

// A container with --rm that is restarted stays, as with an engine, and goes at its end.
func TestRestartedMirrorStays(t *testing.T) {
	r := newRig(t, writes)
	r.run("a", dict{"Cmd": []string{"sleep", "1000"}, "HostConfig": dict{"AutoRemove": true, "Binds": []string{r.workspace + ":/w"}}})
	for range 3 {
		r.must("POST", "/containers/a/restart?t=0", nil, nil)
		if out, err := r.docker("exec", "a", "sh", "-c", "echo -n x >> /w/runs"); err != nil {
			t.Fatalf("after a restart: %v: %s", err, out)
		}
	}
	r.has("runs", "xxx")
	r.must("POST", "/containers/a/stop?t=0", nil, nil)
	testenv.Until(t, "its removal", func() bool {
		status, _ := r.call("GET", "/containers/a/json", nil)
		return status == http.StatusNotFound
	})
}
