package dockerapi

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/maker"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// An escape is a container with which a guest would reach something outside its session.
type escape struct {
	name string
	// body makes the request; secret is a file of the host, other a container of
	// somebody else.
	body func(r *rig, secret, other string) dict
	rule string
	// came is what the container's output, or the host, shows where it worked.
	came func(r *rig, output, secret string) bool
}

const escapeWriting = "write to the workspace's hooks"

const secretText = "the host's own secret"

// sh is a container that runs a script.
func sh(script string, host dict) dict {
	return dict{"Image": busybox, "Cmd": []string{"sh", "-c", script}, "HostConfig": host}
}

func shows(text string) func(*rig, string, string) bool {
	return func(_ *rig, output, _ string) bool { return strings.Contains(output, text) }
}

var escapes = []escape{
	{"bind of the host", func(_ *rig, secret, _ string) dict {
		return sh("cat /mnt/secret", dict{"Binds": []string{filepath.Dir(secret) + ":/mnt:ro"}})
	}, RuleMount, shows(secretText)},
	{"mount of the host", func(_ *rig, secret, _ string) dict {
		return sh("cat /mnt/secret", dict{"Mounts": []dict{{"Type": "bind", "Source": filepath.Dir(secret), "Target": "/mnt", "ReadOnly": true}}})
	}, RuleMount, shows(secretText)},
	{"bind through a link in the workspace", func(r *rig, secret, _ string) dict {
		if err := os.Symlink(filepath.Dir(secret), filepath.Join(r.workspace, "link")); err != nil && !errors.Is(err, fs.ErrExist) {
			r.t.Fatal(err)
		}
		return sh("cat /mnt/secret", dict{"Binds": []string{filepath.Join(r.workspace, "link") + ":/mnt:ro"}})
	}, RuleMount, shows(secretText)},
	{"bind past the workspace", func(r *rig, secret, _ string) dict {
		return sh("cat /mnt", dict{"Binds": []string{r.workspace + "/../" + r.up(secret) + ":/mnt:ro"}})
	}, RuleMount, shows(secretText)},
	{"volume that is a bind", func(_ *rig, secret, _ string) dict {
		return sh("cat /mnt/secret", dict{"Mounts": []dict{{"Type": "volume", "Target": "/mnt", "VolumeOptions": dict{"DriverConfig": dict{
			"Name": "local", "Options": dict{"type": "none", "o": "bind", "device": filepath.Dir(secret)}}}}}})
	}, RuleField, shows(secretText)},
	{escapeWriting, func(r *rig, _, _ string) dict {
		return sh("echo x > /mnt/hook", dict{"Binds": []string{r.workspace + ":/mnt"}})
	}, RuleMount, func(r *rig, _, _ string) bool {
		_, err := os.Stat(filepath.Join(r.workspace, "hook"))
		return err == nil
	}},
	{"the engine's socket", func(r *rig, _, _ string) dict {
		return sh("ls -l /docker.sock", dict{"Binds": []string{r.engine.Socket + ":/docker.sock"}})
	}, RuleMount, shows("srw")},
	// Machines without CAP_SYS_RESOURCE can't start it: that the engine takes it
	// has to do.
	{"privileged", func(*rig, string, string) dict {
		return sh("ls /dev | wc -l", dict{"Privileged": true})
	}, RuleHost, shows("taken")},
	{"a capability", func(*rig, string, string) dict {
		return sh("mkdir -p /mnt; mount -t tmpfs none /mnt && echo mounted", dict{"CapAdd": []string{"SYS_ADMIN"}, "SecurityOpt": []string{"apparmor=unconfined", "seccomp=unconfined"}})
	}, RuleHost, shows("mounted")},
	{"the host's processes", func(*rig, string, string) dict {
		return sh("cat /proc/[0-9]*/comm", dict{"PidMode": "host"})
	}, RuleHost, shows("dockerd")},
	{"the host's network", func(*rig, string, string) dict {
		return sh("ip link", dict{"NetworkMode": "host"})
	}, RuleNetwork, shows("docker0")},
	{"another container's network", func(_ *rig, _, other string) dict {
		return sh("cat /etc/hostname; netstat -ltn", dict{"NetworkMode": "container:" + other})
	}, RuleOwn, shows(":4242")},
	{"another container's processes", func(_ *rig, _, other string) dict {
		return sh("cat /proc/[0-9]*/cmdline", dict{"PidMode": "container:" + other})
	}, RuleHost, shows("4242")},
	{"another container's volumes", func(_ *rig, _, other string) dict {
		return sh("cat /theirs/secret", dict{"VolumesFrom": []string{other}})
	}, RuleHost, shows(secretText)},
	{"a device", func(*rig, string, string) dict {
		return sh("ls -l /dev/mem0", dict{"Devices": []dict{{"PathOnHost": "/dev/null", "PathInContainer": "/dev/mem0", "CgroupPermissions": "rwm"}}})
	}, RuleHost, shows("/dev/mem0")},
	{"the host's IPC", func(*rig, string, string) dict {
		return sh("readlink /proc/self/ns/ipc", dict{"IpcMode": "host"})
	}, RuleHost, func(_ *rig, output, _ string) bool {
		own, _ := os.Readlink("/proc/self/ns/ipc")
		return strings.Contains(output, own)
	}},
	{"a setting of the kernel", func(*rig, string, string) dict {
		return sh("cat /proc/sys/net/ipv4/ip_unprivileged_port_start", dict{"Sysctls": dict{"net.ipv4.ip_unprivileged_port_start": "81"}})
	}, RuleHost, shows("81")},
	{"more memory than the session has", func(*rig, string, string) dict {
		return sh("echo ran", dict{"Memory": 2 << 30})
	}, RuleLimit, shows("ran")},
	{"a container that stays", func(*rig, string, string) dict {
		return sh("echo ran", dict{"RestartPolicy": dict{"Name": "always"}})
	}, RuleHost, shows("ran")},
	{"a log that is sent away", func(*rig, string, string) dict {
		return sh("echo ran", dict{"LogConfig": dict{"Type": "json-file", "Config": dict{"max-size": "1t"}}})
	}, RuleHost, shows("ran")},
	{"Bawn's label", func(*rig, string, string) dict {
		body := sh("echo ran", dict{})
		body["Labels"] = dict{maker.LabelSession: "another"}
		return body
	}, RuleField, shows("ran")},
	{"masked paths uncovered", func(*rig, string, string) dict {
		return sh("wc -c < /proc/sysrq-trigger >/dev/null; mount | grep -q /proc/kcore || echo bare", dict{"MaskedPaths": []string{"/nowhere"}, "ReadonlyPaths": []string{"/nowhere"}})
	}, RuleHost, shows("bare")},
}

func (r *rig) up(secret string) string {
	rel, err := filepath.Rel(filepath.Dir(r.workspace), secret)
	if err != nil {
		r.t.Fatal(err)
	}
	return rel
}

// Each works at the engine itself and is refused by the broker, of which the
// guest sees the reason and the host nothing.
func TestEscapes(t *testing.T) {
	r := newRig(t, nil)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(secretText), 0o600); err != nil {
		t.Fatal(err)
	}
	other := r.victim(dir)
	for _, e := range escapes {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			body := e.body(r, secret, other)
			if out := r.control(body); !e.came(r, out, secret) {
				t.Fatalf("the control shows nothing: %q", out)
			}
			if e.name == escapeWriting {
				os.Remove(filepath.Join(r.workspace, "hook"))
			}
			before := len(r.left())
			status, answer := r.call("POST", "/containers/create?name=escape", body)
			var refusal struct{ Message string }
			if err := json.Unmarshal(answer, &refusal); err != nil || status < 400 || !strings.Contains(refusal.Message, "bawn refused this") || !strings.Contains(refusal.Message, e.rule) {
				t.Errorf("%d %s; want a refusal by %s", status, answer, e.rule)
			}
			if n := len(r.left()); n != before {
				t.Errorf("the engine has %d things of the session; want %d", n, before)
			}
			if _, err := os.Stat(filepath.Join(r.workspace, "hook")); err == nil && e.name == escapeWriting {
				t.Error("it was written")
			}
		})
	}
}

// victim is a container of somebody else.
func (r *rig) victim(dir string) string {
	r.t.Helper()
	body := sh("exec nc -l -p 4242", dict{"Binds": []string{dir + ":/theirs"}, "NetworkMode": "none", "IpcMode": "shareable"})
	body["Labels"] = dict{"owner": "somebody"}
	status, data := r.direct("POST", "/containers/create", body)
	var made struct {
		ID string `json:"Id"`
	}
	if err := json.Unmarshal(data, &made); err != nil || status != http.StatusCreated {
		r.t.Fatalf("%d %s", status, data)
	}
	r.t.Cleanup(func() { r.direct("DELETE", "/containers/"+made.ID+"?force=1&v=1", nil) })
	if status, data := r.direct("POST", "/containers/"+made.ID+"/start", nil); status != http.StatusNoContent {
		r.t.Fatalf("%d %s", status, data)
	}
	return made.ID
}

// control runs a container at the engine itself, and returns what it wrote.
func (r *rig) control(body dict) string {
	r.t.Helper()
	status, data := r.direct("POST", "/containers/create", body)
	var made struct {
		ID string `json:"Id"`
	}
	if err := json.Unmarshal(data, &made); err != nil || status != http.StatusCreated {
		r.t.Fatalf("control: %d %s", status, data)
	}
	defer r.direct("DELETE", "/containers/"+made.ID+"?force=1&v=1", nil)
	host, _ := body["HostConfig"].(dict)
	if host["Privileged"] == true {
		return "taken"
	}
	if status, data := r.direct("POST", "/containers/"+made.ID+"/start", nil); status != http.StatusNoContent {
		r.t.Fatalf("control: %d %s", status, data)
	}
	if host["RestartPolicy"] == nil {
		r.direct("POST", "/containers/"+made.ID+"/wait", nil)
		return r.written(made.ID)
	}
	// Who is started again and again has no end to wait for.
	text := ""
	testenv.Until(r.t, "what the control writes", func() bool { text = r.written(made.ID); return text != "" })
	return text
}

// written returns what a container of the engine has written by now.
func (r *rig) written(id string) string {
	_, out := r.direct("GET", "/containers/"+id+"/logs?stdout=1&stderr=1", nil)
	return demultiplex(out)
}

// What is another's does not exist for a guest, by no request.
func TestOthersAreNotThere(t *testing.T) {
	r := newRig(t, nil)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(secretText), 0o600); err != nil {
		t.Fatal(err)
	}
	other := r.victim(dir)
	_, data := r.direct("POST", "/containers/"+other+"/exec", dict{"Cmd": []string{"true"}})
	var theirs struct {
		ID string `json:"Id"`
	}
	if err := json.Unmarshal(data, &theirs); err != nil || theirs.ID == "" {
		t.Fatalf("control: %s", data)
	}
	mine := r.run("mine", dict{"Cmd": []string{"sleep", "1000"}})
	for _, q := range []struct {
		method, path string
		body         any
	}{
		{"GET", "/containers/" + other + "/json", nil}, {"GET", "/containers/" + other[:12] + "/json", nil}, {"GET", "/containers/" + other + "/logs?stdout=1", nil},
		{"GET", "/containers/" + other + "/archive?path=/theirs/secret", nil}, {"PUT", "/containers/" + other + "/archive?path=/", []byte{}},
		{"POST", "/containers/" + other + "/exec", dict{"Cmd": []string{"id"}}}, {"POST", "/exec/" + theirs.ID + "/start", dict{}}, {"GET", "/exec/" + theirs.ID + "/json", nil},
		{"POST", "/containers/" + other + "/attach?stream=1", nil}, {"POST", "/containers/" + other + "/kill", nil}, {"POST", "/containers/" + other + "/stop?t=0", nil},
		{"POST", "/containers/" + other + "/rename?name=x", nil}, {"DELETE", "/containers/" + other + "?force=1", nil}, {"POST", "/containers/" + other + "/start", nil},
		{"POST", "/containers/" + other + "/wait", nil}, {"GET", "/containers/" + other + "/top", nil}, {"GET", "/containers/" + other + "/stats?stream=0", nil},
	} {
		if status, answer := r.call(q.method, q.path, q.body); status != http.StatusNotFound {
			t.Errorf("%s %s: %d %s; want 404", q.method, q.path, status, answer)
		}
	}
	r.must("POST", "/containers/prune", nil, nil)
	r.must("POST", "/volumes/prune", nil, nil)
	var state struct{ State struct{ Running bool } }
	if _, data := r.direct("GET", "/containers/"+other+"/json", nil); json.Unmarshal(data, &state) != nil || !state.State.Running {
		t.Errorf("the other container suffered: %s", data)
	}
	var list []struct {
		ID string `json:"Id"`
	}
	r.must("GET", "/containers/json?all=1", nil, &list)
	if len(list) != 1 || list[0].ID != mine {
		t.Errorf("the list is %+v; want %s alone", list, mine)
	}
	r.must("GET", `/containers/json?all=1&filters={"label":["owner=somebody"]}`, nil, &list)
	if len(list) != 0 {
		t.Errorf("by the other's label: %+v", list)
	}
}

// What runs has what it was given, and no more.
func TestPosture(t *testing.T) {
	r := newRig(t, func(_ *rig, o *Options) { o.Session.Isolation.Resources.OpenFiles = 512 })
	id := r.run("posture", dict{"Cmd": []string{"sh", "-c", "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; ulimit -n; echo done"}, "HostConfig": dict{"CapDrop": []string{"CAP_CHOWN"}}})
	r.logs(id, "done")
	_, raw := r.call("GET", "/containers/"+id+"/logs?stdout=1", nil)
	// FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, DAC_OVERRIDE
	want := "CapEff:\t00000000000004fa\nCapBnd:\t00000000000004fa\nNoNewPrivs:\t1\nSeccomp:\t2\n512\ndone\n"
	if got := demultiplex(raw); got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	var seen struct {
		HostConfig struct {
			Memory, MemorySwap, PidsLimit int64
			NetworkMode, IpcMode          string
			LogConfig                     struct{ Config map[string]string }
		}
	}
	_, data := r.direct("GET", "/containers/"+id+"/json", nil)
	if err := json.Unmarshal(data, &seen); err != nil {
		t.Fatal(err)
	}
	h := seen.HostConfig
	if h.Memory != 256<<20 || h.MemorySwap != h.Memory || h.PidsLimit != 100 || h.NetworkMode != "none" || h.IpcMode != "private" || h.LogConfig.Config["max-size"] == "" {
		t.Errorf("the engine has %+v", h)
	}
}

// The guard decides, and what it denies does not happen.
func TestGuardDenies(t *testing.T) {
	for _, deny := range []string{"docker:create", "docker:start", "docker:exec"} {
		t.Run(deny, func(t *testing.T) {
			r := newRig(t, nil)
			r.deny = deny
			status, answer := r.call("POST", "/containers/create?name=a", dict{"Image": busybox, "Cmd": []string{"sleep", "1000"}})
			if deny == "docker:create" {
				r.wantDenied(status, answer)
				return
			}
			status, answer = r.call("POST", "/containers/a/start", nil)
			if deny == "docker:start" {
				r.wantDenied(status, answer)
				return
			}
			status, answer = r.call("POST", "/containers/a/exec", dict{"Cmd": []string{"id"}})
			r.wantDenied(status, answer)
		})
	}
	r := newRig(t, nil)
	r.deny = "--health-cmd"
	status, answer := r.call("POST", "/containers/create", dict{"Image": busybox, "Healthcheck": dict{"Test": []string{"CMD-SHELL", "echo >/tmp/ran"}}})
	r.wantDenied(status, answer)
	r = newRig(t, func(_ *rig, o *Options) { o.Guard = nil })
	status, answer = r.call("POST", "/containers/create", dict{"Image": busybox})
	if status != http.StatusForbidden || !strings.Contains(string(answer), RuleUnguarded) {
		t.Errorf("without a guard: %d %s", status, answer)
	}
}

func (r *rig) wantDenied(status int, answer []byte) {
	r.t.Helper()
	if status != http.StatusForbidden || !strings.Contains(string(answer), "the test says so") {
		r.t.Errorf("%d %s", status, answer)
	}
}
