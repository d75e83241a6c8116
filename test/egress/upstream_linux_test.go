package egress_test

import (
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// corporate is the URL of the proxy outside, with what nobody else may read.
const corporate = "http://jane:hunter2@proxy.test:3128"

// secretForms are the forms in which the password could leak.
var secretForms = []string{"hunter2", "amFuZTpodW50ZXIy"}

// proxied lists what the proxy outside was asked for since m.
func (d *account) proxied(t *testing.T, m mark) (hosts []string) {
	t.Helper()
	for _, e := range d.since(t, m) {
		if e.Server != "proxy" {
			continue
		}
		if e.Method != http.MethodConnect || !strings.Contains(e.Header, "Basic "+secretForms[1]) {
			t.Errorf("the proxy saw %+v", e)
		}
		hosts = append(hosts, e.Host)
	}
	return hosts
}

// wantCameFrom wants that whatever reached a server since m came from the machine
// itself, or never from there.
func (d *account) wantCameFrom(t *testing.T, m mark, machine bool) {
	t.Helper()
	for _, e := range d.since(t, m) {
		host, _, _ := net.SplitHostPort(e.From)
		mine := slices.Contains([]string{machineV4, machinePrivateV4, machineV6, machinePrivateV6}, host)
		if e.From != "" && e.Server != "proxy" && mine != machine {
			t.Errorf("the client of %+v is the machine: %v, want %v", e, mine, machine)
		}
	}
}

// resolved reports whether the machine itself has asked for a name since m.
func (d *account) resolved(t *testing.T, m mark, name string) bool {
	t.Helper()
	for line := range strings.Lines(string(tail(t, filepath.Join(d.lab, "dns.log"), m.questions))) {
		if strings.Contains(line, "] "+name+" from "+machineV4) {
			return true
		}
	}
	return false
}

// TestUpstreamProxy: with a proxy everything that leaves goes through it, and
// what is near does not.
func TestUpstreamProxy(t *testing.T) {
	k := newKeyring(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	go accept(l, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\nthe host's port") })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for name, c := range map[string]struct {
		line, want string
		flags      []string
		through    string // the proxy, or "" for nothing
	}{
		"spliced":           {"curl -sS -m 30 https://allowed.test/x", "this is allowed.test, GET /x", allow("allowed.test"), "allowed.test:443"},
		"opened":            {"curl -sS -m 30 https://allowed.test/x", "this is allowed.test, GET /x", []string{"--http", "allowed.test GET /**"}, "allowed.test:443"},
		"plain":             {"curl -sS -m 30 http://allowed.test/x", "this is allowed.test, GET /x", allow("allowed.test"), "allowed.test:80"},
		"WebSocket":         {"$PROBE ws allowed.test:443 allowed.test allowed.test /ws", "hello", []string{"--http", "allowed.test GET /**"}, "allowed.test:443"},
		"SSH":               {"ssh -o BatchMode=yes " + k.user + "@db.test 'echo $((40+2))'", "42", []string{"--ssh-agent", "--allow", "db.test:22"}, "db.test:22"},
		"raw":               {"$PROBE tcp allowed.test:7777 abc", "abc", allow("allowed.test:7777"), "allowed.test:7777"},
		"an address":        {"curl -sS -m 30 http://93.184.215.15/x", "GET /x", allow("93.184.215.15"), ""},
		"private":           {"curl -sS -m 30 http://10.77.0.2/x", "GET /x", allow("10.77.0.2"), ""},
		"a host port":       {"curl -sS -m 30 http://127.0.0.1:" + port + "/", "the host's port", []string{"--host-port", port}, ""},
		"in NO_PROXY":       {"curl -sS -m 30 https://api.test/x", "this is api.test", allow("api.test"), ""},
		"below NO_…":        {"curl -sS -m 30 http://a.wild.test/x", "this is a.wild.test", allow("a.wild.test"), ""},
		"by a proxy inside": {"curl -sS -m 30 -x http://127.0.0.1:61128 https://allowed.test/x", "this is allowed.test", allow("allowed.test"), "allowed.test:443"},
	} {
		t.Run(name, func(t *testing.T) {
			d := *k.account
			d.env = append(slices.Clip(d.env), "HTTPS_PROXY="+corporate, "NO_PROXY=api.test,.wild.test")
			m := d.now(t)
			r := d.inside(t, c.flags, c.line)
			if !strings.Contains(r.out, c.want) {
				t.Errorf("got %q %q, want %q", r.out, r.err, c.want)
			}
			d.wantCameFrom(t, m, c.through == "")
			var want []string
			if c.through != "" {
				want = []string{c.through}
				host, _, _ := strings.Cut(c.through, ":")
				if d.resolved(t, m, host) {
					t.Errorf("%s was resolved here", host)
				}
			}
			if got := d.proxied(t, m); !slices.Equal(got, want) {
				t.Errorf("through the proxy went %q, want %q", got, want)
			}
		})
	}
}

// TestNoUpstreamProxy: which variable counts, and that the configuration wins.
func TestNoUpstreamProxy(t *testing.T) {
	d := newAccount(t)
	bare := strings.TrimPrefix(corporate, "http://")
	for name, c := range map[string]struct {
		env     []string
		config  string
		through bool
	}{
		"nothing":        {nil, "", false},
		"lower case":     {[]string{"https_proxy=" + corporate}, "", true},
		"all":            {[]string{"ALL_PROXY=" + corporate}, "", true},
		"without scheme": {[]string{"all_proxy=" + bare}, "", true},
		"plain only":     {[]string{"HTTP_PROXY=" + corporate, "http_proxy=" + corporate}, "", false},
		"turned off":     {[]string{"HTTPS_PROXY=" + corporate}, "isolation.upstream_proxy = 'none'", false},
		"all excepted":   {[]string{"HTTPS_PROXY=" + corporate, "no_proxy=*"}, "", false},
	} {
		e := *d
		e.env = append(slices.Clip(d.env), c.env...)
		put(t, c.config, d.home, ".config/bawn/config.toml")
		m := e.now(t)
		r := e.inside(t, allow("allowed.test"), "curl -sS -m 30 https://allowed.test/x")
		if got := e.proxied(t, m); !strings.Contains(r.out, "this is allowed.test") || (len(got) > 0) != c.through {
			t.Errorf("%s: through the proxy went %q; %q %q", name, got, r.out, r.err)
		}
	}
}

// TestProxyPasswordStays: nobody but the proxy sees it.
func TestProxyPasswordStays(t *testing.T) {
	d := newAccount(t)
	d.env = append(d.env, "HTTPS_PROXY="+corporate, "npm_config_https_proxy="+corporate)
	look := "env; curl -sS -m 30 https://allowed.test/x; curl -sS -m 30 http://denied.test/; cat /proc/[0-9]*/environ | tr '\\0' '\\n'"
	if r := d.sh(t, look); !strings.Contains(r.out, secretForms[0]) {
		t.Errorf("the control says %q", r.out)
	}
	said := []result{
		d.inside(t, append(allow("allowed.test"), "--env", "HTTPS_PROXY", "--env", "npm_*"), look), d.run(t, d.bawn(t), "run", "--plan", "--json", "--allow", "allowed.test", "--", "true"),
		d.run(t, d.bawn(t), "config", "show"), d.run(t, d.bawn(t), "audit", "query", "--json"),
	}
	d.env = append(d.env, "HTTPS_PROXY=http://jane:hunter2@proxy.test:3129") // nobody is there
	said = append(said, d.inside(t, allow("allowed.test"), "curl -sS -m 30 http://allowed.test/x"))
	d.env = append(d.env, "HTTPS_PROXY=http://jane:hunter2@proxy.test:none")
	said = append(said, d.inside(t, allow("allowed.test"), "echo"))
	for i, r := range said {
		if strings.Contains(r.out+r.err, secretForms[0]) || strings.Contains(r.out+r.err, secretForms[1]) {
			t.Errorf("%d: %s%s", i, r.out, r.err)
		}
	}
	if !strings.Contains(said[0].out, "this is allowed.test") {
		t.Errorf("the guest got %q %q", said[0].out, said[0].err)
	}
	if last := said[5]; last.code != 125 || !strings.Contains(last.err, `isolation.upstream_proxy = "none"`) {
		t.Errorf("a broken proxy: %d %s", last.code, last.err)
	}
	check(t, filepath.WalkDir(filepath.Join(d.home, ".local"), func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(p)
		if strings.Contains(string(text), secretForms[0]) || strings.Contains(string(text), secretForms[1]) {
			t.Errorf("it is in %s", p)
		}
		return err
	}))
}

// TestProxyRefuses: what a proxy on this machine's own loopback answers
// decides, and the human is told what it was and what helps.
func TestProxyRefuses(t *testing.T) {
	d := newAccount(t)
	for name, c := range map[string]struct {
		answer, want, remedy string
	}{
		"works":   {"", "", ""},
		"407":     {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", `407 Proxy Authentication Required`, "HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"},
		"403":     {"HTTP/1.1 403 Forbidden\r\n\r\n", `403 Forbidden`, "NO_PROXY"},
		"garbage": {"220 mail.test ESMTP\r\n\r\n", "malformed", "NO_PROXY"},
		"silence": {"hang up", "EOF", "NO_PROXY"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tunnel(w, r, c.answer) }))
		e := *d
		e.env = append(slices.Clip(d.env), "HTTPS_PROXY="+s.URL)
		for _, flags := range [][]string{allow("allowed.test"), {"--http", "allowed.test GET /**"}} {
			r := e.inside(t, flags, "curl -sS -m 30 https://allowed.test/x; curl -sS -m 30 http://allowed.test/y")
			worked := strings.Contains(r.out, "this is allowed.test, GET /x") && strings.Contains(r.out, "this is allowed.test, GET /y")
			if worked != (c.answer == "") || c.want != "" && (!strings.Contains(r.err, c.want) || !strings.Contains(r.err, c.remedy)) {
				t.Errorf("%s, %q: %q\n%s", name, flags, r.out, r.err)
			}
		}
		s.Close()
	}
}

// TestProxyRefusesPassword: a password that the proxy does not take is told to
// nobody else either.
func TestProxyRefusesPassword(t *testing.T) {
	d := newAccount(t)
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Proxy-Authorization"), secretForms[1]) {
			sent.Add(1)
		}
		tunnel(w, r, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"lab\"\r\n\r\n")
	}))
	defer s.Close()
	d.env = append(d.env, "HTTPS_PROXY="+strings.Replace(s.URL, "//", "//jane:hunter2@", 1))
	line := "curl -sS -i -m 30 https://allowed.test/x; curl -sS -i -m 30 http://allowed.test/y; env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'"
	if r := d.sh(t, line); !strings.Contains(r.out, secretForms[0]) {
		t.Errorf("the control says %q", r.out)
	}
	sent.Store(0)
	for _, flags := range [][]string{allow("allowed.test"), {"--http", "allowed.test GET /**"}} {
		m := d.now(t)
		r := d.inside(t, append(flags, "--env", "HTTPS_PROXY"), line)
		log := d.run(t, d.bawn(t), "audit", "query", "--json")
		for name, text := range map[string]string{"the guest": r.out, "the human": r.err, "the log": log.out + log.err} {
			if strings.Contains(text, secretForms[0]) || strings.Contains(text, secretForms[1]) {
				t.Errorf("%q: %s is told the password: %s", flags, name, text)
			}
		}
		if !strings.Contains(r.err, "407") || !strings.Contains(r.err, "HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT") {
			t.Errorf("%q: the human is told %s", flags, r.err)
		}
		if seen := d.since(t, m); strings.Contains(r.out, "this is") || len(seen) > 0 {
			t.Errorf("%q: past the proxy went %v; %s", flags, seen, r.out)
		}
	}
	if sent.Load() < 4 {
		t.Errorf("the proxy was sent the password %d times, want 4 at least", sent.Load())
	}
}

// tunnel answers a request with some bytes, or as a proxy should.
func tunnel(w http.ResponseWriter, r *http.Request, answer string) {
	in, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if answer == "hang up" {
		return
	}
	if answer != "" {
		_, _ = io.WriteString(in, answer)
		return
	}
	out, err := net.Dial("tcp", r.Host)
	if err != nil {
		return
	}
	defer out.Close()
	_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(out, in); _ = out.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(in, out)
}
