package dockerapi

import (
	"archive/tar"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// The real client, with what people do most.
func TestDockerClient(t *testing.T) {
	r := newRig(t, withGuest)
	for name, text := range map[string]string{
		"file": "of the workspace", ".dockerignore": "left-out", "left-out": "x",
		"Dockerfile": "# syntax=docker/dockerfile:1\nFROM " + busybox + "\nARG WORD\nCOPY . /src/\nRUN echo $WORD >/said; ls /src\nCMD cat /said /src/file\n",
	} {
		if err := os.WriteFile(filepath.Join(r.workspace, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args, want string // a part of what it says
		fails      bool
	}{
		{"version --format {{.Server.APIVersion}}", "1.", false},
		{"run --rm -v " + r.workspace + ":/ws:ro BB cat /ws/file", "of the workspace", false},
		{"run --rm BB sh -c exit\t3", "", true},
		{"run -d --name web --label a=b BB httpd -f -p 80 -h /etc", "", false},
		{"ps --format {{.Names}}", "web", false},
		{"ps -q --filter label=a=b", "", false},
		{"exec web cat /etc/hostname", "", false},
		{"exec -t web tty", "/dev/pts/0", false},
		{"run --rm BB wget -q -O- http://web/passwd", "root:", false},
		{"logs web", "", false},
		{"cp web:/etc/passwd " + filepath.Join(r.workspace, "copy"), "", false},
		{"cp " + filepath.Join(r.workspace, "file") + " web:/tmp/file", "", false},
		{"exec web cat /tmp/file", "of the workspace", false},
		{"rename web shop", "", false},
		{"inspect shop --format {{.Name}}", "/shop", false},
		{"inspect web", "web", true},
		{"stop -t 0 shop", "shop", false},
		{"start shop", "shop", false},
		{"restart -t 0 shop", "shop", false},
		{"volume create data", "data", false},
		{"run --rm -v data:/data BB sh -c echo\tkept>/data/x", "", false},
		{"run --rm -v data:/data BB cat /data/x", "kept", false},
		{"volume ls -q", "data", false},
		{"volume rm data", "data", false},
		{"network create back", "", false},
		{"run -d --name db --network back --network-alias store BB httpd -f -p 90 -h /etc", "", false},
		{"run --rm --network back BB wget -q -O- http://store:90/passwd", "root:", false},
		{"network rm back", "active endpoints", true},
		{"rm -f db", "db", false},
		{"network rm back", "back", false},
		{"pull busybox", "only images that are present", true},
		{"run --rm nothing-of-the-kind true", "only images that are present", true},
		{"run --rm -v /etc:/x:ro BB true", "outside of the workspace", true},
		{"run --rm --network host BB true", "the host's network", true},
		{"run --rm -p 53:53/udp BB true", "only TCP", true},
		{"build -t mine --build-arg WORD=hello --label a=b " + r.workspace, "Successfully tagged mine:latest", false},
		{"build -q " + r.workspace, "sha256:", false},
		{"run --rm mine", "hello\nof the workspace", false},
		{"run --rm mine ls /src/left-out", "No such file", true},
		{"images --format {{.Repository}}", "mine", false},
		{"rmi mine", "Deleted", false},
		{"build --add-host a:127.0.0.1 " + r.workspace, "the parameter", true},
		{"system df", "not among the requests", true},
		{"rm -f shop", "shop", false},
		{"ps -aq", "", false},
	} {
		var args []string
		for _, a := range strings.Fields(strings.ReplaceAll(strings.ReplaceAll(tt.args, "\t", "\x00"), "BB", busybox)) {
			args = append(args, strings.ReplaceAll(a, "\x00", " "))
		}
		out, err := r.docker(args...)
		if !tt.fails && strings.Contains(out, "active endpoints") { // the engine lets go of a container's late
			testenv.Until(t, "the network to be free", func() bool {
				out, err = r.docker(args...)
				return !strings.Contains(out, "active endpoints")
			})
		}
		if (err != nil) != tt.fails || !strings.Contains(out, tt.want) {
			t.Errorf("docker %s: %v: %q; want %q", tt.args, err, out, tt.want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(r.workspace, "copy")); err != nil || !bytes.Contains(text, []byte("root:")) {
		t.Errorf("what was copied out is %q (%v)", text, err)
	}
}

// What is mounted is a copy of what the guest sees.
func TestMounts(t *testing.T) {
	r := newRig(t, func(r *rig, o *Options) {
		if err := os.Mkdir(filepath.Join(r.workspace, "hidden"), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.workspace, "hidden", "secret"), []byte(secretText), 0o644); err != nil {
			r.t.Fatal(err)
		}
		o.Session.Isolation.Mounts = []bawn.Mount{{Path: filepath.Join(r.workspace, "hidden"), Access: bawn.Hidden}}
		withGuest(r, o)
	})
	dir := filepath.Join(r.workspace, "dir")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "sub"), 0o755), os.WriteFile(filepath.Join(dir, "sub", "a"), []byte("before"), 0o640),
		os.Symlink("sub/a", filepath.Join(dir, "inner")), os.Symlink("/etc/shadow", filepath.Join(dir, "outer")),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Symlink("/etc", filepath.Join(r.workspace, "etc")),
		os.WriteFile(filepath.Join(dir, "suid"), nil, 0o755), os.Chmod(filepath.Join(dir, "suid"), 0o4755|os.ModeSetuid),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	id := r.run("m", dict{
		"Cmd":        []string{"sh", "-c", "exec 2>&1; cat /m/inner; cd /m; ls; stat -c %a suid sub/a; cat outer; ls /ws/hidden; touch /m/new; echo done; sleep 100"},
		"HostConfig": dict{"Binds": []string{dir + ":/m:ro", r.workspace + ":/ws:ro"}},
	})
	r.logs(id, "done")
	_, raw := r.call("GET", "/containers/m/logs?stdout=1&stderr=1", nil)
	got := demultiplex(raw)
	want := "before" + "inner\nouter\nsub\nsuid\n755\n640\n" + "cat: can't open 'outer': No such file or directory\n" + "touch: /m/new: Read-only file system\ndone\n"
	if got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	for _, bind := range []string{
		filepath.Join(r.workspace, "etc") + ":/m:ro", filepath.Join(r.workspace, "etc/passwd") + ":/m:ro", filepath.Join(dir, "pipe") + ":/m:ro",
		filepath.Join(dir, "sock") + ":/m:ro", filepath.Join(r.workspace, "absent") + ":/m:ro", dir + ":/m", "/proc/self/environ:/m:ro", "/:/m:ro",
		dir + ":/etc/hosts:ro", dir + ":/proc/x:ro", dir + ":/m/../../etc:ro", dir + ":/m:ro,rshared", dir + ":relative:ro",
	} {
		status, answer := r.call("POST", "/containers/create", dict{"Image": busybox, "HostConfig": dict{"Binds": []string{bind}}})
		if status != http.StatusForbidden || !strings.Contains(string(answer), RuleMount) {
			t.Errorf("%s: %d %s", bind, status, answer)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(r.broker.o.Dir, "mounts-*")); len(left) != 1 {
		t.Errorf("copies of containers that were refused: %q", left)
	}
	r.must("DELETE", "/containers/m?force=1", nil, nil)
	if left, _ := filepath.Glob(filepath.Join(r.broker.o.Dir, "mounts-*")); len(left) != 0 {
		t.Errorf("copies of a container that was removed: %q", left)
	}
}

// Files go in and out as tar streams.
func TestArchive(t *testing.T) {
	r := newRig(t, nil)
	r.run("a", dict{"Cmd": []string{"sleep", "1000"}})
	var stream bytes.Buffer
	tw := tar.NewWriter(&stream)
	if err := tw.WriteHeader(&tar.Header{Name: "in", Mode: 0o644, Size: 5, Format: tar.FormatPAX}); err != nil {
		t.Fatal(err)
	}
	tw.Write([]byte("hello"))
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	r.must("PUT", "/containers/a/archive?path=/tmp", stream.Bytes(), nil)
	status, data := r.call("GET", "/containers/a/archive?path=/tmp/in", nil)
	if h, err := tar.NewReader(bytes.NewReader(data)).Next(); status != http.StatusOK || err != nil || h.Name != "in" || h.Size != 5 {
		t.Errorf("%d %+v %v", status, h, err)
	}
	if status, _ := r.call("GET", "/containers/a/archive?path=/absent", nil); status != http.StatusNotFound {
		t.Errorf("an absent file: %d", status)
	}
	r.must("GET", "/containers/a/json", nil, nil) // it is still known
}

// All containers together have no more than the session.
func TestBudgetOfRunningContainers(t *testing.T) {
	r := newRig(t, nil)
	n := 0
	start := func(mb int) (int, []byte) {
		n++
		name := fmt.Sprint("c", n)
		r.must("POST", "/containers/create?name="+name, sleeper(dict{"Memory": mb << 20}), nil)
		return r.call("POST", "/containers/"+name+"/start", nil)
	}
	for range 2 {
		if status, answer := start(500); status != http.StatusNoContent {
			t.Fatalf("%d %s", status, answer)
		}
	}
	if status, answer := start(500); status != http.StatusForbidden || !strings.Contains(string(answer), RuleLimit) {
		t.Errorf("beyond the session's memory: %d %s", status, answer)
	}
	if status, answer := r.call("POST", "/containers/create", sleeper(dict{"Memory": 1025 << 20})); status != http.StatusForbidden || !strings.Contains(string(answer), RuleLimit) {
		t.Errorf("one that could never start: %d %s", status, answer)
	}
	r.must("DELETE", "/containers/c1?force=1", nil, nil)
	if status, answer := r.call("POST", "/containers/c3/start", nil); status != http.StatusNoContent {
		t.Errorf("after another was removed: %d %s", status, answer)
	}
}

// An engine's answer quotes the guest. A container is gone when the engine says
// so of the container itself.
func TestWordsOfTheGuestInAnAnswer(t *testing.T) {
	r := newRig(t, nil)
	for _, name := range []string{"one", "two"} {
		id := r.run(name, dict{"Cmd": []string{"sleep", "60"}, "HostConfig": dict{"Memory": 500 << 20}})
		status, answer := r.call("GET", "/containers/"+id+"/archive?path="+url.QueryEscape("/no such container"), nil)
		if status != http.StatusNotFound {
			t.Errorf("what is not there: %d %s", status, answer)
		}
	}
	r.must("POST", "/containers/create?name=three", dict{"Image": busybox, "Cmd": []string{"true"}, "HostConfig": dict{"Memory": 500 << 20}}, nil)
	if status, answer := r.call("POST", "/containers/three/start", nil); status != http.StatusForbidden || !strings.Contains(string(answer), RuleLimit) {
		t.Errorf("beyond the session's memory: %d %s", status, answer)
	}
}

// A container that removes itself gives back what it had.
func TestAutoRemove(t *testing.T) {
	r := newRig(t, withGuest)
	for range 3 {
		r.run("once", dict{"Cmd": []string{"true"}, "ExposedPorts": dict{"80/tcp": dict{}}, "HostConfig": dict{"AutoRemove": true, "Memory": 800 << 20, "PublishAllPorts": true}})
		testenv.Until(t, "its removal", func() bool { return len(r.broker.all()) == 0 })
	}
}
