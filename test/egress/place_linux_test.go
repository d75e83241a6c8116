package egress_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestMasks has clients find placeholders in files: in place of a file that exists,
// and through a variable if the file does not exist.
func TestMasks(t *testing.T) {
	d := newAccount(t)
	value := "ghp_" + rand.Text() + rand.Text()[:10]
	mine := put(t, "key=mine\n", d.home, ".tracker")
	d.vault(t, "forge", value, "--host api.test --bearer --file '~/.config/gh/hosts.yml' --format gh", "--host api.test --header x-api-key --file '~/.tracker' --format 'raw:key={}'")
	m := d.now(t)
	r := d.inside(t, []string{"--secret", "forge", "--http", "api.test GET /**"}, strings.Join([]string{
		"cat ~/.tracker", "echo; . ~/.tracker", "curl -sS -m 30 -H \"x-api-key: $key\" https://api.test/file",
		"token=$(sed -n 's/.*oauth_token: //p' $GH_CONFIG_DIR/hosts.yml)", "curl -sS -m 30 -H \"Authorization: Bearer $token\" https://api.test/gh",
	}, "\n"))
	if strings.Contains(r.out+r.err, value) || strings.Contains(r.out, "mine") || !strings.Contains(r.out, "key=ghp_") {
		t.Errorf("the guest finds %s%s", r.out, r.err)
	}
	seen := fmt.Sprint(d.since(t, m))
	for _, want := range []string{"X-Api-Key:[" + value + "]", "Authorization:[Bearer " + value + "]"} {
		if !strings.Contains(seen, want) {
			t.Errorf("outside nobody has seen %q, but %s", want, seen)
		}
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "key=mine\n" {
		t.Errorf("the human's own file holds %q, %v", text, err)
	}
}

// TestHostPort opens one service of the machine's loopback, and no other.
func TestHostPort(t *testing.T) {
	d := newAccount(t)
	open, hits := service(t)
	closed, others := service(t)
	lines := []string{
		"curl -sS -m 30 http://127.0.0.1:" + open + "/", "curl -sS -m 30 http://localhost:" + open + "/", "curl -sS -m 30 http://host.bawn.internal:" + open + "/",
		"curl -sS -m 30 http://127.0.0.1:7000/",
	}
	for i, r := range d.lines(t, func(s string) result {
		return d.inside(t, []string{"--host-port", open, "--host-port", "7000:" + open}, s)
	}, lines) {
		if !strings.Contains(r.out, "the machine") {
			t.Errorf("%s says %q", lines[i], r.out)
		}
	}
	if got := hits.Load(); got != int64(len(lines)) {
		t.Errorf("the machine was reached %d times, want %d", got, len(lines))
	}
	r := d.inside(t, []string{"--host-port", open}, strings.Join([]string{
		"curl -sS -m 30 http://127.0.0.1:" + closed + "/", "curl -sS -m 30 http://host.bawn.internal:" + closed + "/",
		"curl -sS -m 30 -x http://127.0.0.1:61128 http://127.0.0.1:" + closed + "/",
	}, "; "))
	if others.Load() > 0 || strings.Contains(r.out, "the machine") {
		t.Errorf("a port that is not opened says %s", r.out)
	}
}

// TestPublish lets the machine reach one port of the guest, at its loopback and
// as long as the session is there.
func TestPublish(t *testing.T) {
	d := newAccount(t, "python3")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	at := l.Addr().String()
	check(t, l.Close())
	_, port, err := net.SplitHostPort(at)
	check(t, err)
	answers := func(addr string) bool {
		res, err := http.Get("http://" + addr + "/")
		if err != nil {
			return false
		}
		return res.Body.Close() == nil && res.StatusCode == http.StatusOK
	}
	put(t, "from the guest", d.work, "page")
	s := d.openTerminal(t, append(allow("allowed.test"), "-p", port+":3999"), "python3 -m http.server 3999 -b 127.0.0.1 >/dev/null 2>&1 & echo up; read x; kill $!")
	s.see("up")
	testenv.Until(t, "the guest's port answers", func() bool { return answers(at) })
	for _, other := range []string{"127.0.0.1:3999", net.JoinHostPort(machineV4, port)} {
		if answers(other) {
			t.Errorf("%s answers too", other)
		}
	}
	s.say("")
	s.end()
	if answers(at) {
		t.Error("it answers when the session has ended")
	}
	check(t, os.Remove(filepath.Join(d.work, "page")))
}
