package dockerapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// happened lists what the engine says it has done to containers since a time:
// "create name", "pause name", …
func (r *rig) happened(since time.Time) (list []string) {
	r.t.Helper()
	at := func(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
	query := url.Values{"since": {at(since)}, "until": {at(time.Now())}, "filters": {`{"type":["container"]}`}}
	_, data := r.direct("GET", "/events?"+query.Encode(), nil)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var e struct {
			Action string
			Actor  struct{ Attributes map[string]string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			r.t.Fatalf("%v: %s", err, lines.Bytes())
		}
		name, own := strings.CutPrefix(e.Actor.Attributes["name"], r.broker.prefix())
		if own && !slices.Contains([]string{"exec_create", "exec_start"}, e.Action) {
			list = append(list, e.Action+" "+name)
		}
	}
	return list
}

// between wants what was done to one container to lie between two things that
// were done to another.
func wantBetween(t *testing.T, events []string, what, from, to string) {
	t.Helper()
	at := slices.Index(events, what)
	a := -1
	for i, e := range events[:max(at, 0)] {
		if e == from {
			a = i
		}
	}
	if at < 0 || a < 0 || slices.Contains(events[a:at], to) || !slices.Contains(events[at:], to) {
		t.Errorf("%q is not between %q and %q: %q", what, from, to, events)
	}
}

// Nobody who can write a volume runs while another container is made or started
// with it; others go on.
func TestWritersRest(t *testing.T) {
	r := newRig(t, nil)
	sleep := func(binds ...string) dict {
		return dict{"Cmd": []string{"sleep", "1000"}, "HostConfig": dict{"Binds": binds, "NetworkMode": "none", "Memory": 32 << 20, "PidsLimit": 20}}
	}
	r.run("writer", sleep("shared:/a"))
	r.run("reader", sleep("shared:/a:ro"))
	r.run("other", sleep("else:/a"))
	began := time.Now()
	r.run("starts", sleep("shared:/b:ro"))
	events := r.happened(began)
	wantBetween(t, events, "create starts", "pause writer", "unpause writer")
	wantBetween(t, events, "start starts", "pause writer", "unpause writer")
	for _, e := range events {
		if strings.HasSuffix(e, "pause reader") || strings.HasSuffix(e, "pause other") {
			t.Errorf("control: %q", events)
		}
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

// While the engine has the files of a container in its hands nothing of it runs,
// whatever the guest asks for meanwhile, and it goes on when the guest is gone.
func TestCopyingAtRest(t *testing.T) {
	r := newRig(t, nil)
	r.run("runs", dict{"Cmd": []string{"sleep", "1000"}, "HostConfig": dict{"Binds": []string{"v:/p/v"}}})
	for _, q := range []struct{ method, path, event string }{
		{"GET", "/etc/passwd", "archive-path runs"}, {"PUT", "/tmp", "extract-to-dir runs"},
	} {
		began := time.Now()
		r.must(q.method, "/containers/runs/archive?path="+q.path, tarball(t, map[string]string{"a": ""}), nil)
		wantBetween(t, r.happened(began), q.event, "pause runs", "unpause runs")
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
	began := time.Now()
	io.WriteString(c, "PUT /containers/runs/archive?path=/tmp HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-tar\r\nContent-Length: 100000\r\n\r\n")
	c.Write(tarball(t, map[string]string{"b": ""})[:512])
	testenv.Until(t, "it is paused", func() bool { return slices.Contains(r.happened(began), "pause runs") })
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
	if events := r.happened(began); slices.Contains(events, "unpause runs") {
		t.Errorf("it ran: %q", events)
	}
	c.Close()
	testenv.Until(t, "it goes on", func() bool { return !r.stateOf("runs").Paused })
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
