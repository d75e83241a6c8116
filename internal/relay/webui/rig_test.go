package webui

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/bawn-dev/bawn"
)

// memory keeps items in memory.
type memory struct {
	mu    sync.Mutex
	kinds map[string]map[string][]byte
	fail  error
}

func (m *memory) KeepItem(_ context.Context, kind, id string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kinds == nil {
		m.kinds = map[string]map[string][]byte{}
	}
	if m.kinds[kind] == nil {
		m.kinds[kind] = map[string][]byte{}
	}
	m.kinds[kind][id] = bytes.Clone(value)
	return m.fail
}

func (m *memory) Items(_ context.Context, kind string) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.kinds[kind]), m.fail
}

func (m *memory) DropItem(_ context.Context, kind, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kinds[kind], id)
	return m.fail
}

// records keep what was recorded.
type records struct {
	mu     sync.Mutex
	events []bawn.Event
	fail   error
}

func (r *records) Record(_ context.Context, e bawn.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	return r.fail
}

// has reports whether an event of that operation says so, with a peer.
func (r *records) has(operation, reason string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Operation == operation && strings.Contains(e.Reason, reason) && strings.HasPrefix(e.Details["peer"], "127.0.0.1:") {
			return true
		}
	}
	return false
}

// A clock can be put forward.
type clock struct {
	mu   sync.Mutex
	more time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.more)
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.more += d
}

// A rig is a web page that is served over HTTPS on loopback.
type rig struct {
	*Server
	items   *memory
	records *records
	clock   *clock
	port    uint16
	roots   *x509.CertPool
	log     *logText
}

// page is a page with a file of each sort.
var page = fstest.MapFS{
	"index.html":          {Data: []byte("<!doctype html><title>Bawn</title>")},
	"assets/main-abc1.js": {Data: []byte("void 0")},
	"sw.js":               {Data: []byte("void 0")},
	"secret.pem":          {Data: []byte("no type that is served")},
}

// api tells the device, and streams where asked to until it is cut off.
var apiOfRig = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	d, ok := DeviceOf(r.Context())
	if !ok {
		http.Error(w, "nobody", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"name": d.Name, "readOnly": d.ReadOnly})
	if strings.HasSuffix(r.URL.Path, "/Watch") {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
})

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{items: &memory{}, records: &records{}, clock: &clock{}, log: &logText{}, roots: x509.NewCertPool()}
	ca, err := OpenAuthority(t.TempDir(), "localhost", r.clock.now)
	if err != nil {
		t.Fatal(err)
	}
	r.roots.AppendCertsFromPEM(ca.PEM())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.port = netip.MustParseAddrPort(l.Addr().String()).Port()
	o := Options{
		Name: "localhost", Port: r.port, Certificate: ca.Certificate, Fingerprint: ca.Fingerprint(), Authority: ca.PEM(), Items: r.items, Recorder: r.records,
		API: apiOfRig, Files: page, Now: r.clock.now, Log: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	if r.Server, err = New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// A logText is a log that can be read while it is written.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A browser is a client with a cookie jar and one passkey.
type browser struct {
	t      *testing.T
	rig    *rig
	client *http.Client
	auth   *authenticator
}

func (r *rig) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.roots}, ForceAttemptHTTP2: true}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), r.port).String())
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{t: t, rig: r, client: &http.Client{Transport: transport, Jar: jar, Timeout: 20 * time.Second}, auth: newAuthenticator(r.origin)}
}

// request returns a request as the page sends it.
func (b *browser) request(method string, message any) *http.Request {
	b.t.Helper()
	body, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, b.rig.origin+"/bawn.v1."+method, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", b.rig.origin)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func (b *browser) do(r *http.Request) (int, map[string]any) {
	b.t.Helper()
	answer, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	var m map[string]any
	_ = json.Unmarshal(raw, &m)
	return answer.StatusCode, m
}

// call calls a method and returns status and answer.
func (b *browser) call(method string, message any) (int, map[string]any) {
	b.t.Helper()
	return b.do(b.request(method, message))
}

type words map[string]any

// pair pairs with a code and returns the status of the last step.
func (b *browser) pair(code string) int {
	b.t.Helper()
	status, m := b.call("AuthService/BeginPair", words{"code": code})
	if status != http.StatusOK {
		return status
	}
	status, _ = b.call("AuthService/FinishPair", words{"ceremony": m["ceremony"], "name": "Anna's phone", "credential": b.auth.create(b.t, m["options"].(string))})
	return status
}

// login logs in with the passkey and returns the status of the last step.
func (b *browser) login() int {
	b.t.Helper()
	status, m := b.call("AuthService/BeginLogin", words{})
	if status != http.StatusOK {
		return status
	}
	status, _ = b.call("AuthService/FinishLogin", words{"ceremony": m["ceremony"], "credential": b.auth.get(b.t, m["options"].(string))})
	return status
}

// code makes a pairing code and returns the long one.
func (r *rig) code(t *testing.T, readOnly bool) (long, short string) {
	t.Helper()
	m, err := r.Pair(t.Context(), readOnly)
	if err != nil {
		t.Fatal(err)
	}
	_, long, ok := strings.Cut(m.GetUrl(), "/#pair=")
	if !ok {
		t.Fatalf("URL %q; want a code in its fragment", m.GetUrl())
	}
	return long, m.GetCode()
}

// kept is how many items of a kind there are.
func (m *memory) kept(kind string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.kinds[kind])
}

// paired returns a browser that is logged in.
func (r *rig) paired(t *testing.T, readOnly bool) *browser {
	t.Helper()
	b := r.browser(t)
	long, _ := r.code(t, readOnly)
	if status := b.pair(long); status != http.StatusOK {
		t.Fatalf("pairing: %d", status)
	}
	return b
}

// looks returns the status of a call of the API.
func (b *browser) looks() int {
	b.t.Helper()
	status, _ := b.call("ApprovalService/List", words{})
	return status
}

// An authenticator holds one passkey: ES256, attestation "none" (WebAuthn
// Level 3, sections 6 and 8.7).
type authenticator struct {
	origin, rpID string
	flags        byte // of user presence (1) and verification (4)
	key          *ecdsa.PrivateKey
	id, handle   []byte
	counter      uint32
	frozen       bool // the counter stays 0, as that of passkeys that are synchronised
}

func newAuthenticator(origin string) *authenticator {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	id := make([]byte, 16)
	rand.Read(id)
	return &authenticator{origin: origin, rpID: "localhost", flags: 0x05, key: key, id: id}
}

var b64 = base64.RawURLEncoding

type options struct {
	PublicKey struct {
		Challenge string
		User      struct{ ID string }
	}
}

func readOptions(t *testing.T, text string) options {
	t.Helper()
	var o options
	if err := json.Unmarshal([]byte(text), &o); err != nil || o.PublicKey.Challenge == "" {
		t.Fatalf("options %q: %v", text, err)
	}
	return o
}

func (a *authenticator) clientData(kind, challenge string) []byte {
	raw, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false})
	if err != nil {
		panic(err)
	}
	return raw
}

func (a *authenticator) data(flags byte) []byte {
	hash := sha256.Sum256([]byte(a.rpID))
	out := append(hash[:], flags)
	if !a.frozen {
		a.counter++
	}
	return binary.BigEndian.AppendUint32(out, a.counter)
}

// create does navigator.credentials.create.
func (a *authenticator) create(t *testing.T, text string) string {
	t.Helper()
	o := readOptions(t, text)
	a.handle, _ = b64.DecodeString(o.PublicKey.User.ID)
	data := append(a.data(a.flags|0x40), make([]byte, 16)...) // no AAGUID
	data = binary.BigEndian.AppendUint16(data, uint16(len(a.id)))
	data = append(data, a.id...)
	point, err := a.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, 0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32) // COSE: EC2, ES256, P-256, x
	data = append(data, point[1:33]...)
	data = append(data, 0x22, 0x58, 32)
	data = append(data, point[33:]...)
	object := []byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59")
	object = binary.BigEndian.AppendUint16(object, uint16(len(data)))
	object = append(object, data...)
	return a.credential(map[string]any{
		"clientDataJSON": b64.EncodeToString(a.clientData("webauthn.create", o.PublicKey.Challenge)), "attestationObject": b64.EncodeToString(object), "transports": []string{"internal"},
	})
}

// get does navigator.credentials.get.
func (a *authenticator) get(t *testing.T, text string) string {
	t.Helper()
	client := a.clientData("webauthn.get", readOptions(t, text).PublicKey.Challenge)
	data := a.data(a.flags)
	hash := sha256.Sum256(client)
	signed := sha256.Sum256(append(bytes.Clone(data), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, signed[:])
	if err != nil {
		t.Fatal(err)
	}
	return a.credential(map[string]any{
		"clientDataJSON": b64.EncodeToString(client), "authenticatorData": b64.EncodeToString(data),
		"signature": b64.EncodeToString(signature), "userHandle": b64.EncodeToString(a.handle),
	})
}

func (a *authenticator) credential(response map[string]any) string {
	raw, err := json.Marshal(map[string]any{
		"id": b64.EncodeToString(a.id), "rawId": b64.EncodeToString(a.id), "type": "public-key", "response": response, "clientExtensionResults": map[string]any{},
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}
