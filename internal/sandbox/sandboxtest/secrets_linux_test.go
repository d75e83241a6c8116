package sandboxtest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"

	words "github.com/bawn-dev/bawn"
)

// hostName is this machine's, for guests with --host-port.
const hostName = "host.bawn.internal"

// TestNativeSecrets is the provider's that nobody has to name.
func TestNativeSecrets(t *testing.T) {
	t.Parallel()
	contenderNamed(t, "native").secrets(t)
}

// secretClient builds what speaks HTTPS inside, once for all tests.
var secretClient = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(victim), "secretclient")
	return path, testhome.Programs(filepath.Dir(path), "internal/sandbox/sandboxtest/secretclient")
})

// secrets binds a value to a header of one host. That host gets it, which is the
// control; the guest has a placeholder, which no other place and no other host
// gets, and the value is nowhere that the guest can look.
func (c contender) secrets(t *testing.T) {
	f := c.fixtures(t)
	f.Install(t, relay(t))
	if said := c.says(t, f)[sandbox.NetAllow]; said.Strength == words.Unenforced {
		t.Logf("%s has no network by name here: %s", c.name, said.Why)
		return // that it is refused then is part of honest
	}
	program, err := secretClient()
	if err != nil {
		t.Fatal(err)
	}
	secretclient := f.Install(t, program)
	bound, other := newTLSHost(t, f), newTLSHost(t, f)
	f.Environ = append(f.Environ, "SSL_CERT_FILE="+trusted(t, f, bound, other))
	value := "sk-" + rand.Text() + rand.Text()
	c.keep(t, f, value, bound.name())
	attacks := [][]string{
		{"GET", "https://" + bound.name() + "/other-header", "x-other", "$MODEL_KEY"},
		{"GET", "https://" + bound.name() + "/path/$MODEL_KEY"},
		{"GET", "https://" + bound.name() + "/query?k=$MODEL_KEY"},
		{"POST", "https://" + bound.name() + "/body", "", "$MODEL_KEY"},
		{"GET", "https://" + other.name() + "/other-host", "x-api-key", "$MODEL_KEY"},
	}
	argv := []string{secretclient, "GET", "https://" + bound.name() + "/use", "x-api-key", "$MODEL_KEY", "then", "env", "MODEL_KEY"}
	for _, a := range attacks {
		argv = append(append(argv, "then"), a...)
	}
	places := []string{"/tmp", "/run", "/dev/shm", "/etc", f.Home}
	argv = append(append(argv, "then", "search", value[:9], value[9:]), places...)
	flags := []string{"--net", "allowlist", "--secret", "model"}
	for _, h := range []*tlsHost{bound, other} {
		flags = append(flags, "--host-port", h.port, "--http", h.name()+" * /**")
	}
	r := c.run(flags...)(t, f, argv...)
	got := fetched(t, r)
	if len(got) != len(attacks)+3 || strings.Contains(r.Stdout+r.Stderr, value) {
		t.Fatalf("%d of %d came back, and the value must not: exit code %d, %s%s", len(got), len(attacks)+3, r.Code, r.Stdout, r.Stderr)
	}
	placeholder := got[1].Text
	if got[0].Status != http.StatusOK || !strings.HasPrefix(placeholder, "sk-") {
		t.Fatalf("control: the bound host answers %+v, the placeholder is %q: %s", got[0], placeholder, r.Stderr)
	}
	for _, refused := range got[2 : 2+len(attacks)] {
		if refused.Status != http.StatusForbidden {
			t.Errorf("%+v; want it refused", refused)
		}
	}
	if last := got[len(got)-1]; last.Text != "" || last.Failed != "" {
		t.Errorf("the search for the value: %+v", last)
	}
	if found := fetched(t, c.run(flags...)(t, f, secretclient, "search", value[:3], "", "/proc/self/environ")); !strings.Contains(found[0].Text, "environ") {
		t.Errorf("control: the search does not find what is there: %+v", found)
	}
	bound.wants(t, value, placeholder, 1)
	other.wants(t, value, placeholder, 0)
}

// keep puts the value into the vault of the user who starts the sandbox.
func (c contender) keep(t *testing.T, f *sandboxtest.Fixtures, value, host string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(f.Home, "identity")
	if err := os.WriteFile(identity, []byte(id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bawn := f.Install(t, bawn)
	line := fmt.Sprintf("echo %s | %q secret set model --store file --identity %q && %q secret bind model --host %s --header x-api-key --env MODEL_KEY", value, bawn, identity, bawn, host)
	if r := f.Exec(t, "/bin/sh", "-c", line); r.Code != 0 {
		t.Fatalf("exit code %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// fetched reads what came of each word.
func fetched(t *testing.T, r sandboxtest.Result) (list []probe.Fetched) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(r.Stdout)); d.More(); {
		var one probe.Fetched
		if err := d.Decode(&one); err != nil {
			t.Fatalf("%v in %q: %s", err, r.Stdout, r.Stderr)
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		t.Fatalf("nothing came: exit code %d: %s", r.Code, r.Stderr)
	}
	return list
}

// A tlsHost is a server of the host's, which notes all that it is sent.
type tlsHost struct {
	port string
	cert []byte // PEM
	mu   sync.Mutex
	got  []string // requests, as they came
}

func (h *tlsHost) name() string { return hostName + ":" + h.port }

func newTLSHost(t *testing.T, f *sandboxtest.Fixtures) *tlsHost {
	t.Helper()
	h := &tlsHost{}
	s := httptest.NewUnstartedServer(h)
	pair, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	h.cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	h.port = at.Port()
	return h
}

// ServeHTTP notes a request.
func (h *tlsHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var head bytes.Buffer
	_ = r.Header.Write(&head) // into memory
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, r.Method+" "+r.RequestURI+"\n"+head.String()+"\n"+string(body))
	fmt.Fprint(w, "served")
}

// wants compares what came: the value so often, each time in its place, and the
// placeholder never.
func (h *tlsHost) wants(t *testing.T, value, placeholder string, times int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, text := range h.got {
		if strings.Contains(text, placeholder) {
			t.Errorf("the placeholder is outside: %q", text)
		}
		if strings.Contains(text, value) {
			n++
			if !strings.Contains(text, "X-Api-Key: "+value+"\r\n") || strings.Count(text, value) != 1 {
				t.Errorf("the value is where it is not bound: %q", text)
			}
		}
	}
	if n != times {
		t.Errorf("the value came %d times, want %d: %q", n, times, h.got)
	}
}

// selfSigned makes a certificate for this machine's name.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: hostName}, DNSNames: []string{hostName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// trusted is a file with the servers' certificates, in place of the system's.
func trusted(t *testing.T, f *sandboxtest.Fixtures, hosts ...*tlsHost) string {
	t.Helper()
	path := filepath.Join(f.Home, "authorities.pem")
	var all []byte
	for _, h := range hosts {
		all = append(all, h.cert...)
	}
	if err := os.WriteFile(path, all, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
