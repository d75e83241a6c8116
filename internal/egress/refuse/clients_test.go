package refuse

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// quick is how long a real client may take to fail, its own start on a busy
// machine included.
const quick = 20 * time.Second

// TestRealClients: programs fail at once, and say why in as many words as
// their protocol has. Each runs against the refuser; the control of their
// arguments is that they get as far as reading our answer.
func TestRealClients(t *testing.T) {
	testenv.Need(t, "curl", "openssl", "node", "python3", "git", "ssh")
	address := refuser(t, denial)
	_, port, _ := strings.Cut(address, ":")
	upload := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(upload, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	const py = "import sys, urllib.request as u\ntry: u.urlopen(sys.argv[1])\nexcept Exception as e: print(repr(e), e.read().decode() if hasattr(e, 'read') else '')"
	const js = "fetch(process.argv[1]).then(async r => console.log(r.status, await r.text()), e => console.log(String(e.cause)))"
	for _, tt := range []struct {
		name string
		want []string
		argv []string
	}{
		{"curl http", []string{"403 Forbidden", "X-Bawn-Denied: policy.toml:7", line}, []string{"curl", "-sv", "http://" + address}},
		{"curl upload", []string{"403 Forbidden", line}, []string{"curl", "-sv", "--data-binary", "@" + upload, "http://" + address}},
		{"curl json", []string{`"resource":"evil.example:80"`}, []string{"curl", "-s", "-H", "Accept: application/json", "http://" + address}},
		{"curl https", []string{"access denied"}, []string{"curl", "-sv", "https://" + address}},
		{"curl h2", []string{"HTTP/2 403", "x-bawn-denied: policy.toml:7", line}, []string{"curl", "-sv", "--http2-prior-knowledge", "http://" + address}},
		{"openssl", []string{"access denied"}, []string{"openssl", "s_client", "-connect", address}},
		{"node http", []string{"403 " + line}, []string{"node", "-e", js, "http://" + address}},
		{"node https", []string{"access denied"}, []string{"node", "-e", js, "https://" + address}},
		{"python http", []string{"HTTPError 403", line}, []string{"python3", "-c", py, "http://" + address}},
		{"python https", []string{"ACCESS_DENIED"}, []string{"python3", "-c", py, "https://" + address}},
		{"git http", []string{"403"}, []string{"git", "ls-remote", "http://" + address + "/a.git"}},
		{"git https", []string{"denied"}, []string{"git", "ls-remote", "https://" + address + "/a.git"}},
		{"ssh", []string{line}, []string{"ssh", "-F", "none", "-o", "BatchMode=yes", "-p", port, "x@127.0.0.1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), quick)
			defer cancel()
			out, _ := exec.CommandContext(ctx, tt.argv[0], tt.argv[1:]...).CombinedOutput()
			if ctx.Err() != nil {
				t.Errorf("took more than %v", quick)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("want %q in:\n%s", want, out)
				}
			}
		})
	}
}

func TestGoClient(t *testing.T) {
	address := refuser(t, denial)
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	for name, transport := range map[string]*http.Transport{"http/1": {}, "http/2": {Protocols: &h2c}} {
		start := time.Now()
		resp, err := (&http.Client{Transport: transport}).Post("http://"+address, "text/plain", strings.NewReader(strings.Repeat("x", 300_000)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden || string(body) != line+"\n" || resp.Header.Get("X-Bawn-Denied") != "policy.toml:7" || err != nil {
			t.Errorf("%s: %v %q, %v", name, resp, body, err)
		}
		if took := time.Since(start); took > quick {
			t.Errorf("%s took %v", name, took)
		}
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: "evil.example", MinVersion: version, MaxVersion: version})
		if err == nil {
			conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s: %v; want access denied", tls.VersionName(version), err)
		}
	}
}
