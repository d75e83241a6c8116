package dockerapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// made asks for an exec and returns its ID, or why the engine did not make it.
func (r *rig) made(container string, body dict) (id, why string) {
	r.t.Helper()
	status, answer := r.call("POST", "/containers/"+container+"/exec", body)
	var out struct {
		ID string `json:"Id"`
	}
	if status != http.StatusCreated {
		return "", fmt.Sprintf("%d %s", status, answer)
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		r.t.Fatal(err)
	}
	return out.ID, ""
}

// execsOf is how many execs the engine itself keeps of a container.
func (r *rig) execsOf(container string) int {
	r.t.Helper()
	var state struct{ ExecIDs []string }
	if _, data := r.direct("GET", "/containers/"+container+"/json", nil); json.Unmarshal(data, &state) != nil {
		r.t.Fatalf("%s", data)
	}
	return len(state.ExecIDs)
}

// The engine has no request that removes an exec which was never started, so their number
// is limited. Execs that ended no longer count.
func TestExecsAreBounded(t *testing.T) {
	r := newRig(t, nil)
	id := r.run("c", dict{"Cmd": []string{"sh", "-c", "trap exit TERM; while true; do sleep 1; done"}})
	run := func() string {
		exec, why := r.made("c", dict{"Cmd": []string{"true"}})
		if why != "" {
			t.Fatal(why)
		}
		r.must("POST", "/exec/"+exec+"/start", dict{"Detach": true}, nil)
		return exec
	}
	ended := func(exec string) {
		testenv.Until(t, "the end of an exec", func() bool {
			var state struct{ Running bool }
			r.must("GET", "/exec/"+exec+"/json", nil, &state)
			return !state.Running
		})
	}
	var done []string
	for range 20 {
		done = append(done, run())
	}
	for _, exec := range done {
		ended(exec)
	}
	unstarted := 0
	for range maxContainerExecs * 2 {
		_, why := r.made("c", dict{"Cmd": []string{"sleep", "1"}})
		if why == "" {
			unstarted++
		} else if !strings.Contains(why, RuleLimit) || !strings.Contains(why, "have not ended") {
			t.Fatal(why)
		}
	}
	if unstarted != maxContainerExecs {
		t.Errorf("%d execs were made and never started; want %d", unstarted, maxContainerExecs)
	}
	// It lists those that were never started: what it does not list it has not made.
	if n := r.execsOf(id); n < maxContainerExecs || n > maxContainerExecs+len(done) {
		t.Errorf("the engine keeps %d execs", n)
	}
	if status, _ := r.call("GET", "/exec/"+done[0]+"/json", nil); status != http.StatusNotFound {
		t.Errorf("the oldest that ended is still there: %d", status)
	}
	r.run("other", dict{"Cmd": []string{"sleep", "1000"}})
	if _, why := r.made("other", dict{"Cmd": []string{"true"}}); why != "" {
		t.Errorf("another container: %s", why)
	}
	// A container that ends takes its execs with it.
	r.must("POST", "/containers/c/restart?t=5", nil, nil)
	if _, why := r.made("c", dict{"Cmd": []string{"true"}}); why != "" {
		t.Errorf("after a restart: %s", why)
	}
	r.must("DELETE", "/containers/c?force=1", nil, nil)
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	if len(r.broker.execs) != 1 {
		t.Errorf("%d execs are kept; want the other container's", len(r.broker.execs))
	}
}

// Commands that run one after the other don't reach the limit, and the results of the last
// ones can still be read.
func TestExecsThatEndMakeRoom(t *testing.T) {
	r := newRig(t, nil)
	r.run("c", dict{"Cmd": []string{"sleep", "1000"}})
	last := ""
	for i := range maxContainerExecs + 20 {
		exec, why := r.made("c", dict{"AttachStdout": true, "Cmd": []string{"true"}})
		if why != "" {
			t.Fatalf("number %d: %s", i, why)
		}
		r.attached("/exec/"+exec+"/start", `{}`, "")
		if last != "" {
			r.must("GET", "/exec/"+last+"/json", nil, nil)
		}
		last = exec
	}
}

// fakes is a broker in front of an engine that makes whatever it is asked for,
// with n containers.
func fakes(t *testing.T, n int, answer http.HandlerFunc) (*Broker, *rig) {
	f := newFakeEngine(t, answer)
	b, socket := before(t, f.socket)
	go func() {
		for range f.asked { // nobody reads it
		}
	}()
	r := &rig{t: t, broker: b, socket: socket}
	r.client = &http.Client{Transport: unixTransport(socket)}
	t.Cleanup(r.client.CloseIdleConnections)
	for i := range n {
		id := newID()
		b.children[id] = &child{id: id, wanted: &wanted{name: fmt.Sprint("c", i)}}
	}
	return b, r
}

// All containers of a session have so many execs together, also when the requests
// come at the same time, or the engine makes one and does not say so.
func TestExecsOfOneSession(t *testing.T) {
	var made atomic.Int32
	var fails atomic.Bool
	_, r := fakes(t, 8, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Method == http.MethodGet && strings.HasPrefix(req.URL.Path, "/v1.41/exec/"):
			// As engines say it that know no other state of what was never started.
			io.WriteString(w, `{"Running":false,"ExitCode":0}`)
		case req.Method == http.MethodGet:
			io.WriteString(w, `{}`)
		case fails.Load():
			w.WriteHeader(http.StatusConflict)
		default:
			made.Add(1)
			w.WriteHeader(http.StatusCreated)
			if made.Load()%2 == 0 {
				io.WriteString(w, `{"Id":"`) // made, and not said
				return
			}
			fmt.Fprintf(w, `{"Id":%q}`, newID())
		}
	})
	fails.Store(true)
	for range maxContainerExecs + 1 {
		if _, why := r.made("c0", dict{"Cmd": []string{"true"}}); strings.Contains(why, RuleLimit) {
			t.Fatalf("what the engine refuses takes room: %s", why)
		}
	}
	fails.Store(false)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 40 {
				r.made(fmt.Sprint("c", i%8), dict{"Cmd": []string{"true"}})
			}
		})
	}
	all.Wait()
	if n := made.Load(); n != maxSessionExecs {
		t.Errorf("the engine made %d execs; want %d", n, maxSessionExecs)
	}
	_, why := r.made("c1", dict{"Cmd": []string{"true"}})
	if !strings.Contains(why, RuleLimit) || !strings.Contains(why, "session") {
		t.Error(why)
	}
}

// filled is a container that has all execs that it may, never started by an
// engine that says 0 of such; start answers what is asked of /exec/ID/start.
func filled(t *testing.T, start http.HandlerFunc) (r *rig, last string) {
	_, r = fakes(t, 1, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case strings.HasSuffix(req.URL.Path, "/start"):
			start(w, req)
		case req.Method == http.MethodGet:
			io.WriteString(w, `{"Running":false,"ExitCode":0}`)
		default:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"Id":%q}`, newID())
		}
	})
	for range maxContainerExecs {
		var why string
		if last, why = r.made("c0", dict{"Cmd": []string{"true"}}); why != "" {
			t.Fatal(why)
		}
	}
	if _, why := r.made("c0", dict{"Cmd": []string{"true"}}); !strings.Contains(why, RuleLimit) {
		t.Fatalf("control: one too many: %q", why)
	}
	return r, last
}

// starts asks to start an exec, on a connection that the caller closes.
func (r *rig) starts(exec, body string) net.Conn {
	r.t.Helper()
	c, err := r.dial()
	if err != nil {
		r.t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /exec/%s/start HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", exec, len(body), body)
	return c
}

// room waits until there is room for one more exec.
func (r *rig) room() {
	r.t.Helper()
	testenv.Until(r.t, "room for one more", func() bool { _, why := r.made("c0", dict{"Cmd": []string{"true"}}); return why == "" })
}

// Execs that have ended no longer count, even if the client did not wait for the answer,
// or their stream is still open.
func TestStartsThatNobodyWaitsFor(t *testing.T) {
	t.Run("detached", func(t *testing.T) {
		asked, left := make(chan bool), make(chan bool)
		r, exec := filled(t, func(http.ResponseWriter, *http.Request) {
			asked <- true
			<-left
		})
		c := r.starts(exec, `{"Detach":true}`)
		<-asked
		c.Close()
		time.Sleep(200 * time.Millisecond) // until the broker knows
		close(left)
		r.room()
	})
	t.Run("attached", func(t *testing.T) {
		end := make(chan bool)
		defer close(end)
		r, exec := filled(t, func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
			<-end
		})
		defer r.starts(exec, `{}`).Close()
		r.room()
	})
}

// What the engine has not started stays counted.
func TestStartsThatAreRefused(t *testing.T) {
	for _, body := range []string{`{"Detach":true}`, `{}`} {
		r, exec := filled(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) })
		if status, answer := r.call("POST", "/exec/"+exec+"/start", body); status != http.StatusConflict {
			t.Fatalf("%s: %d %s", body, status, answer)
		}
		if _, why := r.made("c0", dict{"Cmd": []string{"true"}}); !strings.Contains(why, RuleLimit) {
			t.Errorf("%s: what was refused makes room: %q", body, why)
		}
	}
}

// While the engine is slow to say what has ended in a container that is full,
// another one does not wait.
func TestRoomNeedNotWait(t *testing.T) {
	asked, answer := make(chan bool, 1000), make(chan bool)
	_, r := fakes(t, 2, func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			asked <- true
			<-answer
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"Id":%q}`, newID())
	})
	for range maxContainerExecs {
		if _, why := r.made("c0", dict{"Cmd": []string{"true"}}); why != "" {
			t.Fatal(why)
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer close(answer)
	all.Go(func() { r.made("c0", dict{"Cmd": []string{"true"}}) })
	<-asked
	done := make(chan string, 1)
	all.Go(func() {
		_, why := r.made("c1", dict{"Cmd": []string{"true"}})
		done <- why
	})
	if why := testenv.Receive(t, "what a container with room is told", done); why != "" {
		t.Error(why)
	}
}

// Where the engine did not say what it made, its list does: what is in there stays
// counted, and the rest is given back.
func TestExecsInDoubt(t *testing.T) {
	const kept = 10
	var hidden atomic.Bool
	hidden.Store(true)
	listed := make([]string, kept)
	for i := range listed {
		listed[i] = newID()
	}
	answers := []string{`{"Id":"`, `{"Id":"no ID"}`}
	var made atomic.Int32
	b, r := fakes(t, 1, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case strings.HasPrefix(req.URL.Path, "/v1.41/containers/") && req.Method == http.MethodGet:
			json.NewEncoder(w).Encode(dict{"ExecIDs": listed})
		case req.Method == http.MethodGet:
			io.WriteString(w, `{"Running":false,"ExitCode":0}`)
		case hidden.Load():
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, answers[int(made.Add(1))%len(answers)])
		default:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"Id":%q}`, newID())
		}
	})
	for range maxContainerExecs {
		r.made("c0", dict{"Cmd": []string{"true"}})
	}
	hidden.Store(false)
	if _, why := r.made("c0", dict{"Cmd": []string{"true"}}); !strings.Contains(why, RuleLimit) {
		t.Fatalf("what the engine may be about to make is not counted: %q", why)
	}
	b.mu.Lock()
	for _, e := range b.execs {
		e.uncertainSince = e.uncertainSince.Add(-createTime)
	}
	b.mu.Unlock()
	got := 0
	for range maxContainerExecs {
		if _, why := r.made("c0", dict{"Cmd": []string{"true"}}); why == "" {
			got++
		}
	}
	if want := maxContainerExecs - kept; got != want {
		t.Errorf("%d more were made; want %d", got, want)
	}
}

// What is kept of a request is no larger than it has to be.
func TestWhatIsKeptIsBounded(t *testing.T) {
	var asked atomic.Int32
	_, r := fakes(t, 1, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"Id":%q}`, newID())
	})
	long := strings.Repeat("x", 200<<10)
	for name, body := range map[string]dict{
		"WorkingDir": {"WorkingDir": "/" + long}, "a relative WorkingDir": {"WorkingDir": "x"}, "User": {"User": long}, "DetachKeys": {"DetachKeys": long},
		"Env": {"Env": []string{"A=" + long}}, "Cmd": {"Cmd": []string{long}},
	} {
		if _, why := r.made("c0", body); !strings.HasPrefix(why, "400") && !strings.HasPrefix(why, "403") {
			t.Errorf("exec: %s: %.200s", name, why)
		}
	}
	host := func(name string, v any) dict { return dict{"Image": busybox, "HostConfig": dict{name: v}} }
	for name, body := range map[string]dict{
		"WorkingDir":   {"Image": busybox, "WorkingDir": "/" + long},
		"Volumes":      {"Image": busybox, "Volumes": dict{"/" + long: dict{}}},
		"ExposedPorts": {"Image": busybox, "ExposedPorts": dict{strings.Repeat("0", 1000) + "80/tcp": dict{}}},
		"endpoints":    {"Image": busybox, "NetworkingConfig": dict{"EndpointsConfig": dict{"bridge": dict{"NetworkID": long}}}},
		"Binds":        host("Binds", []string{"/" + long + ":/m:ro"}),
		"deep":         host("Binds", []string{"v:/" + strings.Repeat("d/", maxDeep+1)}),
		"deep work":    {"Image": busybox, "WorkingDir": "/" + strings.Repeat("d/", maxDeep+1)},
		"a target":     host("Binds", []string{"v:/" + long}),
		"Consistency":  host("Mounts", []dict{{"Type": "volume", "Target": "/m", "Consistency": long}}),
		"Tmpfs":        host("Tmpfs", dict{"/m": strings.Repeat("rw,", 1000)}),
		"CapDrop":      host("CapDrop", []string{long}),
		"CapDrops":     host("CapDrop", make([]string, 1000)),
		"SecurityOpt":  host("SecurityOpt", slicesOf(1000, "no-new-privileges")),
		"HostPort":     host("PortBindings", dict{"80/tcp": []dict{{"HostPort": strings.Repeat("0", 1000)}}}),
		"many values":  {"Image": busybox, "Nothing": make([]dict, maxValues)},
	} {
		status, answer := r.call("POST", "/containers/create", body)
		if status != http.StatusBadRequest && status != http.StatusForbidden {
			t.Errorf("create: %s: %d %.200s", name, status, answer)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the engine was asked %d times", n)
	}
}

func slicesOf(n int, s string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

// Requests at the same time make no more volumes than there may be.
func TestVolumesAtTheSameTime(t *testing.T) {
	var made atomic.Int32
	_, r := fakes(t, 0, func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			made.Add(1)
			time.Sleep(time.Millisecond)
		}
		io.WriteString(w, `{"Name":"x"}`)
	})
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { r.call("POST", "/volumes/create", dict{"Name": fmt.Sprint("v", i)}) })
	}
	all.Wait()
	if n := made.Load(); n != maxVolumes {
		t.Errorf("the engine made %d volumes; want %d", n, maxVolumes)
	}
}

// A guest that opens connections and sends nothing has a limited number of them; closed
// ones no longer count.
func TestIdleConnections(t *testing.T) {
	b, r := fakes(t, 0, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for range maxOpen + 100 {
		c, err := r.dial()
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	last := held[len(held)-1]
	last.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := last.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one too many stays open: %v", err)
	}
	testenv.Until(t, "no more than the bound", func() bool { return b.open.Load() <= maxOpen })
	for _, c := range held {
		c.Close()
	}
	testenv.Until(t, "none", func() bool { return b.open.Load() == 0 })
	if status, answer := r.call("GET", "/networks", nil); status != http.StatusOK {
		t.Errorf("after they are closed: %d %s", status, answer)
	}
}
