package agent_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// relay starts bawn serve with its page, and returns the port. It ends with
// the test, or when end is called.
func (y *account) relay(t *testing.T, bawn string) (port string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	_, port, err = net.SplitHostPort(l.Addr().String())
	check(t, err)
	check(t, l.Close())
	cmd := y.cmd(context.Background(), bawn, "serve", "--listen", "127.0.0.1:"+port)
	cmd.Stderr = os.Stderr
	check(t, cmd.Start())
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // by the signal
	})
	t.Cleanup(end)
	return port, end
}

// pageKey waits for the page and returns the digest of its certificate's key,
// which the browser is told to trust as a human trusts the authority.
func pageKey(t *testing.T, port string) string {
	t.Helper()
	var c *tls.Conn
	testenv.Until(t, "the page", func() bool {
		var err error
		c, err = tls.Dial("tcp4", "127.0.0.1:"+port, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"}) //nolint:gosec // it is asked for its key
		return err == nil
	})
	defer c.Close()
	sum := sha256.Sum256(c.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// phone starts the browser, and returns when it is paired. What wait returns is
// why the human could not do what was to be done.
func (y *account) phone(t *testing.T, bawn, port string) (wait func() error) {
	t.Helper()
	ready := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/new/phone", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "https://localhost:"+port) })
	mux.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) { close(ready) })
	mux.HandleFunc("/pair", func(w http.ResponseWriter, r *http.Request) {
		var pairing struct{ URL string }
		out, err := y.cmd(r.Context(), bawn, "pair", "--json").Output()
		if err == nil {
			err = json.Unmarshal(out, &pairing)
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("pair: %v: %s", err, out), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, pairing.URL)
	})
	mux.HandleFunc("/state", func(w http.ResponseWriter, _ *http.Request) {
		deployed, _ := os.ReadFile(filepath.Join(y.work, "deployed")) // not there yet
		_ = json.NewEncoder(w).Encode(map[string]string{"deployed": string(deployed)})
	})
	control := httptest.NewServer(mux)
	t.Cleanup(control.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	cmd := exec.CommandContext(ctx, "node", "page/phone.mjs", control.URL, pageKey(t, port))
	cmd.Stderr, cmd.Stdout = os.Stderr, os.Stderr
	check(t, cmd.Start())
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- cmd.Wait()
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("the phone is not paired: %v", err)
	}
	return func() error { return <-done }
}
