package dockerapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// A tap calls see as each request to the engine begins and ends, with its method
// and its path below the version.
type tap struct {
	http.RoundTripper
	see func(request string)
	lie func(request string) *http.Response // answered in place of the engine, or nil
}

func (p tap) RoundTrip(req *http.Request) (*http.Response, error) {
	_, path, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	request := req.Method + " " + path
	if p.lie != nil {
		if resp := p.lie(request); resp != nil {
			return resp, nil
		}
	}
	p.see(request)
	resp, err := p.RoundTripper.RoundTrip(req)
	p.see(request)
	return resp, err
}

// tapped has every request of the broker seen.
func (r *rig) tapped(see func(request string), lie func(request string) *http.Response) {
	c := r.broker.engine.client
	c.Transport = tap{c.Transport, see, lie}
}

// freezer tells from the kernel whether the processes of a container that runs are
// frozen: what the engine tells of a pause can be late.
func (r *rig) freezer(name string) (frozen func() bool) {
	r.t.Helper()
	var full struct{ State struct{ Pid int } }
	_, data := r.direct("GET", "/containers/"+r.broker.prefix()+name+"/json", nil)
	if err := json.Unmarshal(data, &full); err != nil || full.State.Pid == 0 {
		r.t.Fatalf("inspect %s: %v: %.200s", name, err, data)
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", full.State.Pid))
	if err != nil {
		r.t.Fatal(err)
	}
	// cgroups(7): version 1 has a line for the freezer, version 2 the line 0.
	file, sign := "", ""
	for line := range strings.Lines(string(groups)) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controller, group, _ := strings.Cut(rest, ":")
		switch {
		case controller == "freezer":
			file, sign = filepath.Join("/sys/fs/cgroup/freezer", group, "freezer.state"), "FROZEN"
		case number == "0" && file == "":
			file, sign = filepath.Join("/sys/fs/cgroup", group, "cgroup.events"), "frozen 1"
		}
	}
	return func() bool {
		text, err := os.ReadFile(file)
		if err != nil {
			r.t.Error(err)
		}
		return strings.Contains(string(text), sign)
	}
}

// Containers that can write a volume are paused while another container is made or started
// with it; others run on.
func TestWritersRest(t *testing.T) {
	r := newRig(t, nil)
	sleep := func(binds ...string) dict {
		return dict{"Cmd": []string{"sleep", "1000"}, "HostConfig": dict{"Binds": binds, "NetworkMode": "none", "Memory": 32 << 20, "PidsLimit": 20}}
	}
	r.run("writer", sleep("shared:/a"))
	r.run("reader", sleep("shared:/a:ro"))
	r.run("other", sleep("else:/a"))
	seen := map[string]int{}
	writer, reader, other := r.freezer("writer"), r.freezer("reader"), r.freezer("other")
	r.tapped(func(request string) {
		if verb := path.Base(request); verb == "create" || verb == "start" {
			seen[verb]++
			if !writer() || reader() || other() {
				t.Errorf("%s: the writer runs, or another one does not", request)
			}
		}
	}, nil)
	r.run("starts", sleep("shared:/b:ro"))
	if seen["create"] != 2 || seen["start"] != 2 || writer() {
		t.Errorf("seen: %v; does the writer go on: %v", seen, !writer())
	}
	// One that its guest has paused stays so.
	r.must("POST", "/containers/writer/pause", nil, nil)
	r.run("later", sleep("shared:/b:ro"))
	if s := r.stateOf("writer"); !s.Paused {
		t.Errorf("the guest's own pause is over: %+v", s)
	}
}

func (r *rig) stateOf(name string) (s state) {
	r.t.Helper()
	var full struct{ State state }
	r.must("GET", "/containers/"+name+"/json", nil, &full)
	return full.State
}

// While the engine works on the files of a container, the container stays paused, whatever
// the guest requests. It is resumed even if the guest is gone.
func TestCopyingAtRest(t *testing.T) {
	r := newRig(t, nil)
	r.run("runs", dict{"Cmd": []string{"sleep", "1000"}, "HostConfig": dict{"Binds": []string{"v:/p/v"}}})
	seen, frozen := 0, r.freezer("runs")
	r.tapped(func(request string) {
		if path.Base(request) == "archive" {
			if seen++; !frozen() {
				t.Errorf("it runs at %s", request)
			}
		}
	}, nil)
	for method, place := range map[string]string{"GET": "/etc/passwd", "PUT": "/tmp"} {
		r.must(method, "/containers/runs/archive?path="+place, tarball(t, map[string]string{"a": ""}), nil)
		testenv.Until(t, "it goes on", func() bool { return !frozen() })
	}
	if seen != 4 {
		t.Errorf("%d times a request began or ended, want 4", seen)
	}
	if status, data := r.call("HEAD", "/containers/runs/archive?path=/etc", nil); status != http.StatusOK {
		t.Errorf("%d %s", status, data)
	}

	c, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The beginning of a stream whose end does not come.
	io.WriteString(c, "PUT /containers/runs/archive?path=/tmp HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-tar\r\nContent-Length: 100000\r\n\r\n")
	c.Write(tarball(t, map[string]string{"b": ""})[:512])
	testenv.Until(t, "it is paused", func() bool { return frozen() })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	r.client.CloseIdleConnections()
	for _, verb := range []string{"unpause", "kill?signal=CONT", "restart", "stop?t=0"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://docker/containers/runs/"+verb, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := r.client.Do(req); err == nil {
			resp.Body.Close()
			t.Errorf("%s is answered: %s", verb, resp.Status)
		}
	}
	if !frozen() {
		t.Error("it runs")
	}
	c.Close()
	testenv.Until(t, "it goes on", func() bool { return !frozen() })
}

// Events of an earlier pause reach Docker late and change its mark of a container:
// of one that runs to paused, and of one that is paused to running. Neither
// lets it run while its files are in the engine's hands, nor leaves it stopped.
func TestLateMarks(t *testing.T) {
	r := newRig(t, nil)
	id := r.run("runs", dict{"Cmd": []string{"sleep", "1000"}})
	copied, wrong, frozen := 0, map[string]int{}, r.freezer("runs")
	r.tapped(func(request string) {
		if path.Base(request) == "archive" {
			if copied++; !frozen() {
				t.Errorf("it runs at %s", request)
			}
		}
	}, func(request string) *http.Response {
		verb := path.Base(request)
		if wrong[verb]++; wrong[verb] > 2 {
			return nil
		}
		switch {
		case verb == "json" && copied == 0:
			return reply(http.StatusOK, `{"State":{"Running":true,"Paused":true}}`)
		case verb == "pause":
			return reply(http.StatusConflict, `{"message":"Container is already paused"}`)
		case verb == "unpause":
			return reply(http.StatusInternalServerError, `{"message":"Container is not paused"}`)
		}
		return nil
	})
	r.must("GET", "/containers/runs/archive?path=/etc/passwd", nil, nil)
	if copied != 2 || wrong["pause"] < 3 {
		t.Errorf("%d, %v", copied, wrong)
	}
	testenv.Until(t, "it goes on", func() bool { return !frozen() })
	wrong["unpause"] = 0
	r.must("HEAD", "/containers/"+id+"/archive?path=/etc/passwd", nil, nil)
	if wrong["unpause"] != 3 || frozen() {
		t.Errorf("it stays stopped: %v", wrong)
	}
}

func reply(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// Containers with volumes in common are made, started and ended at the same
// time, and nothing waits for itself.
func TestManyWithOneVolume(t *testing.T) {
	r := newRig(t, nil)
	done := make(chan struct{})
	for i := range 6 {
		go func() {
			defer func() { done <- struct{}{} }()
			name := fmt.Sprint("many", i)
			body := dict{"Image": busybox, "Cmd": []string{"sleep", "1000"}, "HostConfig": dict{"NetworkMode": "none", "Memory": 32 << 20, "PidsLimit": 20, "Binds": []string{fmt.Sprint("v", i%2, ":/a"), fmt.Sprint("v", (i+1)%2, ":/b")}}}
			for _, q := range []struct{ method, path string }{
				{"POST", "/containers/create?name=" + name}, {"POST", "/containers/" + name + "/start"}, {"HEAD", "/containers/" + name + "/archive?path=/bin"}, {"POST", "/containers/" + name + "/kill"},
			} {
				if status, data := r.call(q.method, q.path, body); status >= 300 && !strings.HasPrefix(q.path, "/containers/"+name+"/k") {
					t.Errorf("%s %s: %d %s", q.method, q.path, status, data)
				}
				if body != nil {
					body = nil
				}
			}
		}()
	}
	for range 6 {
		testenv.Receive(t, "the end of one, who may wait for another", done)
	}
}
