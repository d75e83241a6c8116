package dockerapi

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A fake engine answers what the test says, and keeps what it was asked. It
// stands for engines that lie, hang and die, which a real one does not.
type fakeEngine struct {
	socket string
	asked  chan string
	stat   func() // before each answer about a file; nil for nothing
}

func newFakeEngine(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *fakeEngine {
	t.Helper()
	f := &fakeEngine{socket: filepath.Join(t.TempDir(), "engine.sock"), asked: make(chan string, 1000)}
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_ping" {
			w.Header().Set("Api-Version", "1.41")
			return
		}
		if r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/archive") { // every path is a directory
			if f.stat != nil {
				f.stat()
			}
			w.Header().Set(statHeader, base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"name":"x","mode":%d}`, fs.ModeDir|0o755)))
			return
		}
		body, _ := io.ReadAll(r.Body)
		f.asked <- fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body)
		answer(w, r)
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return f
}

// before starts a broker in front of an engine and returns how to connect.
func before(t *testing.T, socket string) (*Broker, string) {
	t.Helper()
	m, err := maker.Self()
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Options{
		Engine: socket, Maker: m, Session: bawn.Session{ID: "session123456789"}, Log: testLog{t},
		Guard: func(context.Context, bawn.Action) bawn.Decision { return bawn.Decision{Verdict: bawn.Allow} },
	})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	go b.Serve(l)
	t.Cleanup(func() { b.Close() })
	return b, at
}

// raw sends bytes, and returns what comes back until nothing more does.
func raw(t *testing.T, socket, text string) string {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for wait := 20 * time.Second; ; wait = 500 * time.Millisecond {
		buf := make([]byte, 64<<10)
		c.SetReadDeadline(time.Now().Add(wait))
		n, err := c.Read(buf)
		if out = append(out, buf[:n]...); err != nil {
			return string(out)
		}
	}
}

// What a guest hides in a request never reaches the engine: not as a second
// request, not as a header, not as a parameter.
func TestSmuggling(t *testing.T) {
	f := newFakeEngine(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	_, socket := before(t, f.socket)
	evil := "POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n{\"Image\":\"evil\",\"HostConfig\":{\"a\":0}}"
	for name, text := range map[string]string{
		"two lengths":           "POST /volumes/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 200\r\n\r\n{}" + evil,
		"length and chunks":     "POST /volumes/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"odd chunks":            "POST /volumes/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + evil,
		"a header in two lines": "GET /info HTTP/1.1\r\nHost: x\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n",
		"a space before colon":  "GET /info HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n",
		"a line in the path":    "GET /info%0d%0aX:%20y HTTP/1.1\r\nHost: x\r\n\r\n",
		"a line in a parameter": "GET /containers/json?filters=%7B%22name%22:%5B%22a%0d%0aX%22%5D%7D HTTP/1.1\r\nHost: x\r\n\r\n",
		"another host":          "GET http://other/info HTTP/1.1\r\nHost: x\r\n\r\n",
		"old upgrade":           "GET /info HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
		"HTTP/2":                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			answer := raw(t, socket, text)
			if strings.Contains(answer, "HTTP/2") || strings.Contains(answer, "101 ") {
				t.Errorf("answer %q", answer)
			}
			for {
				select {
				case got := <-f.asked:
					if strings.Contains(got, "evil") || strings.ContainsAny(got, "\r\n") || strings.Contains(got, "%0D") && !strings.Contains(got, "filters=") {
						t.Errorf("the engine was asked %q", got)
					}
					continue
				default:
				}
				break
			}
		})
	}
}

// The engine gets the broker's request, in the broker's version of the API.
func TestWhatTheEngineHears(t *testing.T) {
	id := strings.Repeat("ab", 32)
	f := newFakeEngine(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/create") {
			w.WriteHeader(http.StatusCreated)
		}
		fmt.Fprintf(w, `{"Id":%q,"Name":"x"}`, id)
	})
	_, socket := before(t, f.socket)
	body := `{"Image":"a/b:1","Env":["A=b"],"Cmd":"run","Labels":{"x":"y"},"HostConfig":{"NetworkMode":"default","Privileged":false,"AutoRemove":true,"Memory":67108864,"MemorySwappiness":-1,"Ulimits":[{"Name":"nofile","Soft":10,"Hard":20}]}}`
	answer := raw(t, socket, fmt.Sprintf("POST /v1.30/containers/create?name=web&platform= HTTP/1.1\r\nHost: x\r\nX-Registry-Auth: secret\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	if !strings.HasPrefix(answer, "HTTP/1.1 201 ") {
		t.Fatal(answer)
	}
	if got := <-f.asked; got != "GET /v1.41/images/a/b:1/json " {
		t.Errorf("asked %q", got)
	}
	method, rest, _ := strings.Cut(<-f.asked, " ")
	target, text, _ := strings.Cut(rest, " ")
	if method != "POST" || target != "/v1.41/containers/create?name=bawn-session12345-web" {
		t.Errorf("asked %s %s", method, target)
	}
	var got, want any
	self, _ := maker.Self()
	if err := errors.Join(json.Unmarshal([]byte(text), &got), json.Unmarshal(fmt.Appendf(nil, `{
		"Image":%q,"Env":["A=b"],"Cmd":["run"],
		"Labels":{"x":"y","dev.bawn.session":"session123456789","dev.bawn.maker":%q,"dev.bawn.space":%q,"dev.bawn.role":"child"},
		"HostConfig":{"NetworkMode":"none","AutoRemove":true,"CapDrop":["ALL"],
			"CapAdd":["CHOWN","DAC_OVERRIDE","FOWNER","FSETID","KILL","NET_BIND_SERVICE","SETGID","SETUID"],"SecurityOpt":["no-new-privileges"],
			"IpcMode":"private","CgroupnsMode":"private","LogConfig":{"Type":"json-file","Config":{"max-file":"2","max-size":"16m"}},
			"RestartPolicy":{"Name":"no"},"Memory":67108864,"MemorySwap":67108864,"PidsLimit":2048,"Ulimits":[{"Name":"nofile","Soft":10,"Hard":20}]}}`,
		id, self.String(), self.Space), &want)); err != nil {
		t.Fatal(err)
	}
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("the engine heard\n%s\nwant\n%s", g, w)
	}
}

// An engine that hangs makes no guest wait for ever, and keeps no session from
// ending.
func TestEngineThatHangs(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	f := newFakeEngine(t, func(http.ResponseWriter, *http.Request) { <-hang })
	b, socket := before(t, f.socket)
	b.engine.patience = time.Second
	began := time.Now()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /containers/json HTTP/1.1\r\nHost: x\r\n\r\n")
	<-f.asked
	ended := make(chan error, 1)
	go func() { ended <- b.Close() }()
	if err := testenv.Receive(t, "its end", ended); err == nil {
		t.Error("nobody was told that the engine could not be asked")
	}
	t.Logf("ended after %v", time.Since(began).Round(time.Millisecond))
}

// A session ends though the engine is still asked about the way to each of a container's
// many mounts, which a guest can make long.
func TestEndWhileItLooks(t *testing.T) {
	id, looks, hang := newID(), make(chan struct{}, 100), make(chan struct{})
	defer close(hang)
	f := newFakeEngine(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/create") {
			w.WriteHeader(http.StatusCreated)
		}
		fmt.Fprintf(w, `{"Id":%q}`, id)
	})
	f.stat = func() {
		looks <- struct{}{}
		<-hang
	}
	b, socket := before(t, f.socket)
	b.engine.patience = time.Hour
	go func() {
		if c, err := net.Dial("unix", socket); err == nil {
			io.WriteString(c, "POST /containers/create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"Image\":\"a\"}")
		}
	}()
	testenv.Receive(t, "a look", looks)
	ended := make(chan error, 1)
	go func() { ended <- b.Close() }()
	testenv.Receive(t, "the end of the session", ended)
	for destroyed := false; !destroyed; {
		destroyed = strings.HasPrefix(testenv.Receive(t, "the removal of what was made", f.asked), "DELETE ")
	}
}

// An engine that is not there is an error for the guest, and for who starts.
func TestEngineThatIsGone(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone.sock")
	_, socket := before(t, gone)
	if answer := raw(t, socket, "GET /info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 502 ") || !strings.Contains(answer, RuleEngine) {
		t.Errorf("answer %q", answer)
	}
	if err := Reach(t.Context(), gone); err == nil {
		t.Error("it was reached")
	}
	if _, err := Find(gone, func(string) string { return "" }); err == nil {
		t.Error("it was found")
	}
	if _, err := Find("", func(string) string { return "tcp://192.0.2.1:2375" }); err == nil {
		t.Error("an engine elsewhere was taken")
	}
	old := newFakeEngine(t, func(http.ResponseWriter, *http.Request) {})
	if err := Reach(t.Context(), old.socket); err != nil {
		t.Errorf("control: %v", err)
	}
}

// What an engine answers is not passed on unseen.
func TestEngineThatLies(t *testing.T) {
	f := newFakeEngine(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			io.WriteString(w, `[{"Id":"`+strings.Repeat("0", 64)+`","Names":["/theirs"],"Labels":{"dev.bawn.session":"session123456789"}}]`)
		case strings.HasSuffix(r.URL.Path, "/info"):
			io.WriteString(w, `{"ServerVersion":"1","Name":"the-hosts-name","DockerRootDir":"/var/lib/docker","RegistryConfig":{"Mirrors":["m"]}}`)
		default:
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	})
	_, socket := before(t, f.socket)
	get := func(path string) string {
		return raw(t, socket, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	}
	if answer := get("/containers/json"); !strings.Contains(answer, "[]") {
		t.Errorf("a container of nobody's is listed: %q", answer)
	}
	if answer := get("/info"); strings.Contains(answer, "the-hosts-name") || strings.Contains(answer, "/var/lib") || !strings.Contains(answer, `"ServerVersion":"1"`) {
		t.Errorf("info %q", answer)
	}
	if answer := get("/images/a/json"); strings.Contains(answer, "Location") || strings.Contains(answer, " 307 ") {
		t.Errorf("a redirect is passed on: %q", answer)
	}
}

// TestRemovalThatIsNotTold: an engine that is asked while it removes a container may
// never answer; the container is gone all the same.
func TestRemovalThatIsNotTold(t *testing.T) {
	asked := make(chan string, 100)
	f := newFakeEngine(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/wait") {
			asked <- r.URL.Query().Get("condition")
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"message":"No such container"}`)
	})
	b, _ := before(t, f.socket)
	told := make(chan error, 1)
	go func() { told <- b.removed(&child{id: strings.Repeat("0", 64)}) }()
	if condition := testenv.Receive(t, "a question", asked); condition != "removed" {
		t.Errorf("the engine is asked for %q", condition)
	}
	if err := testenv.Receive(t, "the removal", told); !gone(err) {
		t.Errorf("%v; want that it is gone", err)
	}
}

// The end of the session ends what is attached, and everything is removed.
func TestEndOfSession(t *testing.T) {
	r := newRig(t, withGuest)
	id := r.run("stays", dict{"Cmd": []string{"sleep", "1000"}, "HostConfig": dict{"Binds": []string{"kept:/data"}}})
	c, err := r.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /containers/%s/attach?stream=1&stdout=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n", id)
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "101") {
		t.Fatalf("%q %v", line, err)
	}
	if left := r.left(); len(left) < 3 {
		t.Fatalf("control: container, holder and volume are not in %q", left)
	}
	if err := r.broker.Close(); err != nil {
		t.Fatal(err)
	}
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, in); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the stream goes on")
	}
	if left := r.left(); len(left) != 1 || !strings.Contains(left[0], "-network") {
		t.Errorf("left %q; want the holder alone", left)
	}
}

// What a maker left that was killed is removed by the next, and nothing else.
func TestSweep(t *testing.T) {
	r := newRig(t, nil)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	self, err := maker.Self()
	if err != nil {
		t.Fatal(err)
	}
	make := func(name string, labels map[string]string) {
		t.Helper()
		if status, data := r.direct("POST", "/containers/create?name="+name, dict{"Image": busybox, "Labels": labels}); status != http.StatusCreated {
			t.Fatalf("%d %s", status, data)
		}
		if status, data := r.direct("POST", "/volumes/create", dict{"Name": name, "Labels": labels}); status != http.StatusCreated {
			t.Fatalf("%d %s", status, data)
		}
		t.Cleanup(func() {
			r.direct("DELETE", "/containers/"+name+"?force=1", nil)
			r.direct("DELETE", "/volumes/"+name, nil)
		})
	}
	killed := maker.Maker{PID: dead.Process.Pid, Start: 1, Space: self.Space}
	reused := maker.Maker{PID: os.Getpid(), Start: 1, Space: self.Space}
	make("bawn-sweep-dead", killed.Labels(nil, "s", RoleChild))
	make("bawn-sweep-holder", killed.Labels(nil, "s", RoleHolder))
	make("bawn-sweep-reused", reused.Labels(nil, "s", RoleChild))
	make("bawn-sweep-alive", self.Labels(nil, "s", RoleChild))
	make("bawn-sweep-elsewhere", maker.Maker{PID: killed.PID, Start: 1, Space: "1"}.Labels(nil, "s", RoleChild))
	make("bawn-sweep-role", killed.Labels(nil, "s", "other"))
	make("sweep-by-its-image", killed.Labels(nil, "s", RoleChild))
	make("bawn-sweep-nobody", map[string]string{"a": "b"})
	if err := Sweep(t.Context(), r.engine.Socket); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"bawn-sweep-dead": 404, "bawn-sweep-holder": 404, "bawn-sweep-reused": 404, "bawn-sweep-alive": 200, "bawn-sweep-elsewhere": 200, "bawn-sweep-role": 200, "bawn-sweep-nobody": 200, "sweep-by-its-image": 200,
	} {
		container, _ := r.direct("GET", "/containers/"+name+"/json", nil)
		volume, _ := r.direct("GET", "/volumes/"+name, nil)
		if container != want || volume != want {
			t.Errorf("%s: container %d, volume %d; want %d", name, container, volume, want)
		}
	}
}

// Events of the session's own containers come, and no others.
func TestEvents(t *testing.T) {
	r := newRig(t, nil)
	c, err := r.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	r.control(sh("true", dict{}))
	id := r.run("mine", dict{"Cmd": []string{"true"}, "Labels": dict{"a": "b"}})
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	for dec := json.NewDecoder(resp.Body); ; {
		var e event
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if e.Actor.ID != id || e.Actor.Attributes["name"] != "mine" || e.Actor.Attributes["a"] != "b" || e.Actor.Attributes[maker.LabelSession] != "" {
			t.Errorf("event %+v", e)
		}
		if e.Action == "die" {
			return
		}
	}
}
