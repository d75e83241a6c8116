package webui

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// A subscriber is a browser's side of push (RFC 8291).
type subscriber struct {
	key  *ecdh.PrivateKey
	auth []byte
}

func newSubscriber(t *testing.T) *subscriber {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	auth := make([]byte, 16)
	rand.Read(auth)
	return &subscriber{key, auth}
}

func (s *subscriber) at(endpoint string) *bawnv1.DeviceServiceSubscribeRequest {
	return &bawnv1.DeviceServiceSubscribeRequest{Endpoint: endpoint, P256Dh: b64.EncodeToString(s.key.PublicKey().Bytes()), Auth: b64.EncodeToString(s.auth)}
}

// open decrypts a message: aes128gcm (RFC 8188) with keys of RFC 8291, 3.4.
func (s *subscriber) open(t *testing.T, body []byte) string {
	t.Helper()
	salt, rest := body[:16], body[20:]
	from, err := ecdh.P256().NewPublicKey(rest[1 : 1+rest[0]])
	if err != nil {
		t.Fatal(err)
	}
	sealed := rest[1+rest[0]:]
	shared, err := s.key.ECDH(from)
	if err != nil {
		t.Fatal(err)
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		out, err := hkdf.Key(sha256.New, secret, salt, info, n)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	ikm := derive(shared, s.auth, "WebPush: info\x00"+string(s.key.PublicKey().Bytes())+string(from.Bytes()), 32)
	block, err := aes.NewCipher(derive(ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gcm.Open(nil, derive(ikm, salt, "Content-Encoding: nonce\x00", 12), sealed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(string(plain), "\x00\x02")
}

// pushed is a rig whose push service is a server on loopback.
func pushed(t *testing.T, s *sink, status int) *rig {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Location", "https://127.0.0.1/")
		w.WriteHeader(status)
		s.add(r.Host + r.URL.Path + "|" + r.Header.Get("Authorization") + "|" + string(body))
	}))
	t.Cleanup(server.Close)
	r := newRig(t, func(o *Options) {
		o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.RootCAs = roots
	r.pusher.client.Transport.(*http.Transport).TLSClientConfig = config
	return r
}

// TestPush: a paired browser that has subscribed gets a notice that only it can
// read, without a word of the action.
func TestPush(t *testing.T) {
	s := &sink{more: make(chan struct{}, 1)}
	r := pushed(t, s, http.StatusCreated)
	r.paired(t, false)
	device, browser := r.devices.all()[0].ID, newSubscriber(t)
	if err := r.Subscribe(t.Context(), device, browser.at("https://push.example.com/for/"+canary)); err != nil {
		t.Fatal(err)
	}
	run(t, r.Notifier(time.Millisecond), s)
	got := strings.SplitN(s.all()[0], "|", 3)
	if got[0] != "push.example.com/for/"+canary || !strings.HasPrefix(got[1], "vapid t=") {
		t.Errorf("the service got %q %q", got[0], got[1])
	}
	var m map[string]string
	text := browser.open(t, []byte(got[2]))
	if err := json.Unmarshal([]byte(text), &m); err != nil || strings.Contains(text, canary) {
		t.Errorf("message %q: %v", text, err)
	}
	if want := "Session abcdef01 (agent claude) asks for a host: open Bawn"; m["body"] != want || m["url"] != "/#approvals" || m["tag"] != "abcdef01" {
		t.Errorf("message %v; want %q", m, want)
	}
}

// TestPushEnds: a browser that is gone is not tried again, an error of the
// service shows no endpoint in the log, and no redirect is followed.
func TestPushEnds(t *testing.T) {
	for status, stays := range map[int]bool{http.StatusGone: false, http.StatusNotFound: false, http.StatusInternalServerError: true, http.StatusFound: true} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := &sink{more: make(chan struct{}, 1)}
			r := pushed(t, s, status)
			r.paired(t, false)
			if err := r.Subscribe(t.Context(), r.devices.all()[0].ID, newSubscriber(t).at("https://push.example.com/"+canary)); err != nil {
				t.Fatal(err)
			}
			r.pusher.send(t.Context(), message{short: "x", tag: "y"})
			if d := r.devices.all()[0]; (d.Push != nil) != stays {
				t.Errorf("the subscription stays %v; want %v", d.Push != nil, stays)
			}
			if len(s.all()) != 1 || strings.Contains(r.log.String(), canary) {
				t.Errorf("%d requests; log %q", len(s.all()), r.log)
			}
		})
	}
}

// TestEndpoints: a device can't make the relay call the user's own network.
func TestEndpoints(t *testing.T) {
	r := newRig(t)
	r.paired(t, false)
	device, s := r.devices.all()[0].ID, newSubscriber(t)
	for endpoint, want := range map[string]bool{
		"https://push.example.com/x": true, "https://push.example.com:443/x": true,
		"http://push.example.com/x": false, "https://push.example.com:8443/x": false, "https://user@push.example.com/": false,
		"https://127.0.0.1/": false, "https://[::1]/": false, "https://localhost/": false, "https://router/": false, "https://2130706433/": false,
		"https://0x7f.0.0.1/": false, "https:push.example.com": false, "": false, "https://push.example.com/" + strings.Repeat("x", maxEndpoint): false,
	} {
		if err := r.Subscribe(t.Context(), device, s.at(endpoint)); (err == nil) != want {
			t.Errorf("%.60q: %v; want accepted %v", endpoint, err, want)
		}
	}
	bad := s.at("https://push.example.com/x")
	bad.P256Dh = b64.EncodeToString(make([]byte, 65))
	if err := r.Subscribe(t.Context(), device, bad); err == nil {
		t.Error("a key that is no point is accepted")
	}
	for _, address := range []string{"127.0.0.1:443", "localhost:443", "10.0.0.1:443", "169.254.169.254:443"} {
		if conn, err := dialPublic(t.Context(), "tcp", address); err == nil || !strings.Contains(err.Error(), "not") && !strings.Contains(err.Error(), "refus") {
			t.Errorf("%s: %v %v; want a refusal", address, conn, err)
		}
	}
	if answer, err := r.pusher.client.Get(r.origin); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("the relay's own client reaches the user's network: %v %v", answer, err)
	}
}
