package mitm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/trust"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// place writes what a guest would find, and returns its environment.
func (r *rig) place() []string {
	dir := r.t.TempDir()
	for name, data := range map[string][]byte{trust.CA: r.CA.PEM(), trust.Bundle: bundle(r.t, r.CA, newCA(r.t).PEM()), trust.JavaStore: javaStore(r.t, r.CA, newCA(r.t).PEM())} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	for _, v := range trust.Place(dir).Env {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// TestRealClients runs programs that know nothing of us, with nothing but the
// environment that a guest has, and without it as the control.
func TestRealClients(t *testing.T) {
	const node = `require("https").get({host: "127.0.0.1", port: PORT, servername: HOST, headers: {Host: HOST, Authorization: AUTH}},
		r => r.on("data", d => process.stdout.write(d)))`
	const python = `
import http.client, socket, ssl
s = ssl.create_default_context().wrap_socket(socket.create_connection(("127.0.0.1", PORT)), server_hostname=HOST)
c = http.client.HTTPConnection(HOST)
c.sock = s
c.request("GET", "/", headers={"Authorization": AUTH})
print(c.getresponse().read().decode())`
	for _, tt := range []struct {
		name, need string
		args       []string
		want       string
	}{
		{"curl", "curl", []string{"curl", "-sS", "-w", "%{http_version}", "--http1.1", "--connect-to", host + ":443:127.0.0.1:PORT", "-H", "Authorization: Bearer " + placeholder, "https://" + host + "/"}, "got it1.1"},
		{"curl with HTTP/2", "curl", []string{"curl", "-sS", "-w", "%{http_version}", "--http2", "--connect-to", host + ":443:127.0.0.1:PORT", "-H", "Authorization: Bearer " + placeholder, "https://" + host + "/"}, "got it2"},
		{"node", "node", []string{"node", "-e", node}, "got it"},
		{"python", "python3", []string{"python3", "-c", python}, "got it"},
		{"java", "java", []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "testdata/Fetch.java", host, "PORT"}, "HTTP/1.1 200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testenv.Need(t, tt.need)
			r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.Header.Get("Authorization") == "Bearer "+value {
					io.WriteString(w, "got it")
				}
			}), func(r *rig) {
				bind(bawn.Bearer, "")(r)
				r.up.NextProtos = []string{"http/1.1"}
			})
			swap := strings.NewReplacer("PORT", r.port, "HOST", fmt.Sprintf("%q", host), "AUTH", fmt.Sprintf("%q", "Bearer "+placeholder))
			for _, trusting := range []bool{true, false} {
				ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
				defer cancel()
				cmd := exec.CommandContext(ctx, tt.args[0])
				for _, a := range tt.args[1:] {
					cmd.Args = append(cmd.Args, swap.Replace(a))
				}
				if cmd.Env = []string{"PATH=" + os.Getenv("PATH")}; trusting {
					cmd.Env = r.place()
				}
				out, err := cmd.CombinedOutput()
				if (err == nil && strings.Contains(string(out), tt.want)) != trusting {
					t.Errorf("trusting %v: %v\n%s", trusting, err, out)
				}
			}
		})
	}
}

// Java reads the store in place of its own as well, which it opens without a
// password.
func TestJavaTrustStore(t *testing.T) {
	testenv.Need(t, "java")
	r := newRig(t, http.NotFoundHandler(), nil)
	file := filepath.Join(t.TempDir(), "cacerts")
	if err := os.WriteFile(file, javaStore(t, r.CA, bundle(t, r.CA, nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "keytool", "-list", "-keystore", file, "-storepass", "changeit").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "contains 2 entries") || strings.Count(string(out), "trustedCertEntry") != 2 {
		t.Errorf("keytool: %v\n%s", err, out)
	}
}
