package approvals_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/relay/webui"
	"github.com/bawn-dev/bawn/internal/testenv"
)

type relayStatus struct {
	Running, Stopped, OnDemand bool
	PID, Pending               int
	Page                       string
}

func (r *account) status() (s relayStatus) {
	r.t.Helper()
	code, out, errs := r.run("bawn", "serve", "--status", "--json")
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
		r.t.Fatalf("status: %d %s%s (%v)", code, out, errs, err)
	}
	return s
}

// serves starts a relay in the background with a page, which the test stops.
func (r *account) serves() (s relayStatus) {
	r.t.Helper()
	code, out, errs := r.run("bawn", "serve", "-d", "--listen", "127.0.0.1:0")
	if code != 0 || !strings.Contains(out, "page: https://localhost:") || strings.Contains(out+errs, "level=") {
		r.t.Fatalf("serve -d: %d %s%s", code, out, errs)
	}
	r.t.Cleanup(func() { r.run("bawn", "serve", "--stop") })
	return r.status()
}

// TestServeObeys: a relay starts where a session needs one, gives way to the one that
// its user starts, and does not come back once its user has stopped it.
func TestServeObeys(t *testing.T) {
	r := newAccount(t)
	if s := r.status(); s.Running || s.Stopped {
		t.Errorf("at first: %+v", s)
	}
	asks := r.away("wait", append([]string{"--"}, r.Guest("tcp", "first.test:443")...)...)
	waits := r.pending("first.test:443")
	if s := r.status(); !s.Running || !s.OnDemand || s.Page != "" || s.Pending != 1 {
		t.Errorf("what a session has started: %+v", s)
	}
	first := r.serves()
	if first.OnDemand || !strings.HasPrefix(first.Page, "https://localhost:") || first.Pending != 1 {
		t.Errorf("what has taken over: %+v", first)
	}
	if code, out, errs := r.run("bawn", "pair", "--json"); code != 0 || !strings.Contains(out, first.Page+"/#") {
		t.Errorf("pair: %d %s%s", code, out, errs)
	}
	second := r.serves()
	if second.PID == first.PID || second.Page == first.Page {
		t.Errorf("%+v was not taken over by %+v", first, second)
	}
	r.answer("bawn", "deny", waits.ID, "--why", "not today")
	if got := testenv.Receive(t, "an answer", asks); !strings.Contains(got, "not today") {
		t.Errorf("a question that two relays have handed on: %s", got)
	}
	if code, out, errs := r.run("bawn", "serve", "--stop"); code != 0 || !strings.Contains(out, "has ended") {
		t.Errorf("stop: %d %s%s", code, out, errs)
	}
	r.staysStopped()
	if s := r.serves(); !s.Running || s.Stopped {
		t.Errorf("asked for again: %+v", s)
	}
}

// staysStopped has sessions and a person need the relay that was stopped.
func (r *account) staysStopped() {
	r.t.Helper()
	const why = "bawn serve --stop"
	got := testenv.Receive(r.t, "a command", r.away("wait", "--split", "--", "/bin/sh", "-c", "terraform apply"))
	if !strings.Contains(got, why) {
		r.t.Errorf("a session is told %s; want %q in it", got, why)
	}
	if got := testenv.Receive(r.t, "the network", r.away("wait", append([]string{"--"}, r.Guest("tcp", "second.test:443")...)...)); !strings.Contains(got, "refused second.test:443") {
		r.t.Errorf("the network: %s", got)
	}
	if code, _, errs := r.run("bawn", "approvals"); code != 0 || !strings.Contains(errs, "no relay runs") {
		r.t.Errorf("approvals: %d %s", code, errs)
	}
	if s := r.status(); s.Running || !s.Stopped {
		r.t.Errorf("it came back: %+v", s)
	}
}

// TestServeIsNotForGuests: a guest that says it is no guest does not end the relay, nor
// marks it as stopped. That its user does is the control, in TestServeObeys.
func TestServeIsNotForGuests(t *testing.T) {
	r := newAccount(t)
	before := r.serves()
	bawnd := filepath.Join(r.Bin, "bawnd")
	for _, line := range []string{bawnd + " serve --stop", "env -u BAWN_SESSION " + bawnd + " serve --stop", "env -u BAWN_SESSION " + bawnd + " serve -d --listen 127.0.0.1:0"} {
		code, out, errs := r.run("bawn", "run", "--", "/bin/sh", "-c", line)
		if after := r.status(); after != before {
			t.Errorf("%s (%d %s%s): %+v; want %+v", line, code, out, errs, after, before)
		}
	}
}

// TestServeStopsUnits: a relay of the system's is ended there, where its socket would
// start it again.
func TestServeStopsUnits(t *testing.T) {
	r := newAccount(t)
	fake := filepath.Join(t.TempDir(), "systemctl")
	said := fake + ".said"
	check(t, os.WriteFile(fake, []byte("#!/bin/sh\necho \"$@\" >>"+said+"\n"), 0o700))
	for i, kv := range r.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			r.Env[i] = "PATH=" + filepath.Dir(fake) + ":" + path
		}
	}
	r.activated()
	if code, out, errs := r.run("bawn", "serve", "--stop"); code != 0 {
		t.Errorf("stop: %d %s%s", code, out, errs)
	}
	if got, err := os.ReadFile(said); string(got) != "--user stop bawn.socket bawn.service\n" {
		t.Errorf("systemctl was told %q (%v)", got, err)
	}
}

// activated starts a relay as systemd does, with its socket.
func (r *account) activated() {
	r.t.Helper()
	run := filepath.Join(r.Home, ".local/state/bawn/run")
	check(r.t, os.MkdirAll(run, 0o700))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(run, places.HostsSocket)})
	check(r.t, err)
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	check(r.t, err)
	cmd := r.Command(context.Background(), "/bin/sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES="+places.HostsSocket+" exec "+filepath.Join(r.Bin, "bawnd")+" serve")
	cmd.ExtraFiles = []*os.File{f}
	check(r.t, cmd.Start())
	check(r.t, errors.Join(l.Close(), f.Close()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		testenv.Receive(r.t, "its end", ended)
	})
	testenv.Until(r.t, "the relay", func() bool {
		_, out, _ := r.run("bawn", "serve", "--status", "--json")
		return strings.Contains(out, `"unit":true`)
	})
}

// TestServeForThePhone follows the recipes of docs/relay.md: the page has the name that
// the phone uses, with a certificate for it, and what "bawn pair" prints leads there.
func TestServeForThePhone(t *testing.T) {
	r := newAccount(t)
	ca, err := webui.OpenAuthority(t.TempDir(), "box.tail1234.ts.net", time.Now)
	check(t, err)
	own := r.ownCertificate(ca)
	for name, more := range map[string][]string{"box.local": nil, "box.tail1234.ts.net": own} {
		code, out, errs := r.run(append([]string{"bawn", "serve", "-d", "--listen", "0.0.0.0:0", "--name", name}, more...)...)
		if code != 0 || !strings.Contains(out, "page: https://"+name+":") {
			t.Fatalf("%s: %d %s%s", name, code, out, errs)
		}
		t.Cleanup(func() { r.run("bawn", "serve", "--stop") })
		var pairing struct{ URL, Fingerprint string }
		_, out, errs = r.run("bawn", "pair", "--json")
		if err := json.Unmarshal([]byte(out), &pairing); err != nil || !strings.HasPrefix(pairing.URL, r.status().Page+"/#") {
			t.Fatalf("%s: %s%s (%v)", name, out, errs, err)
		}
		authority := ca.PEM()
		if more == nil {
			authority = r.fetched(name, "/bawn-ca.crt", &tls.Config{InsecureSkipVerify: true}) // past the browser's warning
			block, _ := pem.Decode(authority)
			if sum := sha256.Sum256(block.Bytes); strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":") != pairing.Fingerprint {
				t.Errorf("%s: the authority is not the one whose SHA-256 %q was shown", name, pairing.Fingerprint)
			}
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		if page := r.fetched(name, "/", &tls.Config{RootCAs: roots}); !strings.Contains(string(page), "<html") {
			t.Errorf("%s: the page is %.80q", name, page)
		}
	}
}

// ownCertificate writes what "tailscale cert" would, and returns the flags for it.
func (r *account) ownCertificate(ca *webui.Authority) []string {
	pair, err := ca.Certificate()
	check(r.t, err)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	check(r.t, err)
	r.Put(r.t, "box.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})), 0o644)
	r.Put(r.t, "box.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})), 0o600)
	return []string{"--tls-cert", filepath.Join(r.Home, "box.pem"), "--tls-key", filepath.Join(r.Home, "box.key")}
}

// fetched is a file of the page that runs, as a device gets it which resolves its name
// to this machine.
func (r *account) fetched(name, path string, c *tls.Config) []byte {
	r.t.Helper()
	page, err := url.Parse(r.status().Page)
	check(r.t, err)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: c, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+page.Port())
	}}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+name+":"+page.Port()+path, nil)
	check(r.t, err)
	res, err := client.Do(req)
	check(r.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	check(r.t, err)
	return text
}
