package dockerapi

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// What Testcontainers does: a server in a container, found by its mapped port.
func TestContainerForATest(t *testing.T) {
	r := newRig(t, withGuest)
	var info struct{ ServerVersion string }
	r.must("GET", "/info", nil, &info)
	id := r.run("db", dict{
		"Cmd":          []string{"sh", "-c", "echo ready to serve; while true; do echo hello from $HOSTNAME | nc -l -p 5432; done"},
		"ExposedPorts": dict{"5432/tcp": dict{}},
		"Labels":       dict{"org.testcontainers": "true"},
		"HostConfig":   dict{"PortBindings": dict{"5432/tcp": []dict{{"HostIp": "", "HostPort": ""}}}, "NetworkMode": "bridge", "Memory": 64 << 20},
	})
	r.logs(id, "ready to serve")

	var made struct {
		ID string `json:"Id"`
	}
	r.must("POST", "/containers/"+id+"/exec", dict{"AttachStdout": true, "Cmd": []string{"sh", "-c", "echo in exec; exit 7"}}, &made)
	if out := r.attached("/exec/"+made.ID+"/start", `{"Detach":false,"Tty":false}`, ""); !strings.Contains(out, "in exec") {
		t.Errorf("exec wrote %q", out)
	}
	var exec struct{ ExitCode int }
	r.must("GET", "/exec/"+made.ID+"/json", nil, &exec)
	if exec.ExitCode != 7 {
		t.Errorf("exit code %d; want 7", exec.ExitCode)
	}

	var shown struct {
		Name            string
		Config          struct{ Labels map[string]string }
		NetworkSettings struct {
			Ports map[string][]struct {
				HostIP   string `json:"HostIp"`
				HostPort string
			}
		}
	}
	r.must("GET", "/containers/db/json", nil, &shown)
	if diff := cmp.Diff(map[string]string{"org.testcontainers": "true"}, shown.Config.Labels); diff != "" || shown.Name != "/db" {
		t.Errorf("name %q, labels: %s", shown.Name, diff)
	}
	ports := shown.NetworkSettings.Ports["5432/tcp"]
	if len(ports) != 1 || ports[0].HostIP != "127.0.0.1" {
		t.Fatalf("ports %+v", shown.NetworkSettings.Ports)
	}
	if got := r.fromGuest(ports[0].HostPort); !strings.HasPrefix(got, "hello from") {
		t.Errorf("through the mapped port came %q", got)
	}
	if c, err := net.DialTimeout("tcp", "127.0.0.1:"+ports[0].HostPort, time.Second); err == nil {
		c.Close()
		t.Error("the port is open at the host's loopback")
	}
	r.must("POST", "/containers/db/stop?t=0", nil, nil)
	r.refusedFromGuest(ports[0].HostPort)
	r.must("DELETE", "/containers/db?v=1", nil, nil)
	if status, _ := r.call("GET", "/containers/db/json", nil); status != 404 {
		t.Errorf("a container that was removed answers %d", status)
	}
	want := []string{"docker:create " + busybox + " sh -c", "docker:start " + busybox + " db", "docker:exec db sh -c"}
	for i, got := range r.asked() {
		if i >= len(want) || !strings.HasPrefix(got, want[i]) {
			t.Errorf("action %d: %q", i, got)
		}
	}
}

// fromGuest reads what a port of the guest's loopback says.
func (r *rig) fromGuest(port string) string {
	r.t.Helper()
	text := ""
	testenv.Until(r.t, "what comes through the port", func() bool { text = r.read(port); return text != "" })
	return text
}

func (r *rig) read(port string) string {
	r.t.Helper()
	var n uint16
	if _, err := fmt.Sscan(port, &n); err != nil {
		r.t.Fatalf("port %q: %v", port, err)
	}
	f, err := r.guest.Dial(n)
	if err != nil {
		return ""
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	text, _ := io.ReadAll(c)
	return string(text)
}

// refusedFromGuest wants nobody to listen any more.
func (r *rig) refusedFromGuest(port string) {
	r.t.Helper()
	var n uint16
	fmt.Sscan(port, &n)
	testenv.Until(r.t, "the end of port "+port, func() bool {
		f, err := r.guest.Dial(n)
		if err == nil {
			f.Close()
		}
		return err != nil
	})
}

// attached sends a request whose connection becomes a stream, writes input and
// ends its own way, and returns what comes until the other one ends.
func (r *rig) attached(path, body, input string) string {
	r.t.Helper()
	c, err := r.dial()
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "POST /v1.41%s HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	head := make([]byte, 0, 512)
	for one := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); head = append(head, one[0]) {
		if _, err := c.Read(one); err != nil {
			r.t.Fatalf("%v after %q", err, head)
		}
	}
	if !strings.HasPrefix(string(head), "HTTP/1.1 101 ") {
		rest, _ := io.ReadAll(io.LimitReader(c, 300))
		r.t.Fatalf("no stream: %s%s", head, rest)
	}
	if _, err := io.WriteString(c, input); err != nil {
		r.t.Fatal(err)
	}
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		r.t.Fatal(err)
	}
	raw, err := io.ReadAll(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return demultiplex(raw)
}

// demultiplex takes the frames of a stream without a terminal apart: a byte for
// which stream, three of nothing, four for the length.
func demultiplex(raw []byte) string {
	var out strings.Builder
	for len(raw) >= 8 {
		n := int(binary.BigEndian.Uint32(raw[4:]))
		raw = raw[8:]
		out.Write(raw[:min(n, len(raw))])
		raw = raw[min(n, len(raw)):]
	}
	return out.String()
}

// The end of one way of a stream is the end of that way alone.
func TestHalfClose(t *testing.T) {
	r := newRig(t, nil)
	id := r.run("cat", dict{"Cmd": []string{"sleep", "1000"}})
	var made struct {
		ID string `json:"Id"`
	}
	r.must("POST", "/containers/"+id+"/exec", dict{"AttachStdin": true, "AttachStdout": true, "Cmd": []string{"sh", "-c", "cat; echo and then"}}, &made)
	if out := r.attached("/exec/"+made.ID+"/start", `{}`, "what was written\n"); out != "what was written\nand then\n" {
		t.Errorf("got %q", out)
	}
}
