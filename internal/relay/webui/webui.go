// Package webui serves the web page over HTTPS: it pairs devices, lets them in
// with a passkey, guards what they send, and tells them that somebody waits.
// What the page can do is the API's matter, which is handed in.
//
// Nothing is served without TLS, and nothing of the API without a login. What
// is refused is recorded with the peer's address.
package webui

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// Items keep small values: devices, logins, the key for push. What a method
// has done is durable when it returns nil. *store.Store is one.
type Items interface {
	// KeepItem adds a value or replaces it.
	KeepItem(ctx context.Context, kind, id string, value []byte) error
	// Items returns all values of a kind by their IDs.
	Items(ctx context.Context, kind string) (map[string][]byte, error)
	// DropItem removes a value; one that is not there is no error.
	DropItem(ctx context.Context, kind, id string) error
}

// The kinds of items.
const (
	deviceItems = "device"
	loginItems  = "login"
	keyItems    = "push key"
)

// Options say what a Server serves. All but Machine, Fingerprint, Notices and
// Dial must be set.
type Options struct {
	Name        string // of the host, as it stands in the page's address; passkeys are bound to it
	Port        uint16 // as it stands in the page's address
	Certificate func() (*tls.Certificate, error)
	Fingerprint string // of Bawn's own authority, shown when a device is paired
	Authority   []byte // PEM of it, offered at /bawn-ca.crt; nil without such an authority
	Machine     string // its name, for humans with several
	Items       Items
	Recorder    bawn.Recorder
	API         http.Handler // gets requests of devices only: see DeviceOf
	Files       fs.FS        // of the page, with index.html
	Notices     []Notice     // besides push
	Now         func() time.Time
	Log         *slog.Logger
	// Dial connects to push services; nil connects to public addresses only.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Server is the web page's.
type Server struct {
	o        Options
	origin   string
	passkeys *webauthn.WebAuthn
	devices  *devices
	logins   *logins
	pairing  pairing
	rites    rites
	visits   visits
	requests *limiter
	attempts *limiter
	refusals refusals
	turned   refusals // of connections: a flood of them hides no other entry
	crowd    *crowd
	pusher   *pusher
	handler  http.Handler

	bodyTime, writeTime time.Duration // shorter in tests
}

// Origin returns the page's origin, as browsers write it: without the port
// where it is that of HTTPS.
func Origin(name string, port uint16) string {
	if port == 443 {
		return "https://" + name
	}
	return "https://" + name + ":" + strconv.Itoa(int(port))
}

// New returns a Server with the devices that are paired already.
func New(ctx context.Context, o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Server{o: o, origin: Origin(o.Name, o.Port), bodyTime: bodyTime, writeTime: writeTime}
	s.requests = newLimiter(50, 200, 500, 1000, o.Now)
	s.attempts = newLimiter(0.5, 10, 5, 50, o.Now)
	s.refusals = refusals{to: o.Recorder, now: o.Now, log: o.Log}
	s.turned = refusals{to: o.Recorder, now: o.Now, log: o.Log}
	s.crowd = newCrowd(func(peer net.Addr, why string) {
		s.turned.add(&http.Request{RemoteAddr: peer.String()}, "connection", why)
	})
	var err error
	if s.passkeys, err = newPasskeys(o.Name, s.origin, o.Machine); err != nil {
		return nil, err
	}
	if s.devices, err = loadDevices(ctx, o.Items); err != nil {
		return nil, err
	}
	if s.logins, err = loadLogins(ctx, o.Items, o.Now); err != nil {
		return nil, err
	}
	if s.pusher, err = newPusher(ctx, s); err != nil {
		return nil, err
	}
	s.handler = s.front(s.routes())
	return s, nil
}

func (o Options) check() error {
	name, _, err := hostname.NormalASCII(o.Name)
	if err != nil || name != o.Name || isAddress(name) {
		return fmt.Errorf("name %q can't have a passkey bound to it; want the name of a host in lower case, for example localhost", o.Name)
	}
	if o.Port == 0 || o.Certificate == nil || o.Items == nil || o.Recorder == nil || o.API == nil || o.Files == nil || o.Now == nil || o.Log == nil {
		return errors.New("BUG(bawn): the web page lacks an option")
	}
	return nil
}

// isAddress reports whether a name in normal form is an IP address.
func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

func newPasskeys(name, origin, machine string) (*webauthn.WebAuthn, error) {
	resident := true
	limit := webauthn.TimeoutConfig{Enforce: true, Timeout: riteTime, TimeoutUVD: riteTime}
	w, err := webauthn.New(&webauthn.Config{
		RPID: name, RPOrigins: []string{origin}, RPDisplayName: strings.TrimSpace("Bawn " + machine),
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: &resident, ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationRequired,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: limit, Registration: limit},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys of %q: %w", name, err)
	}
	return w, nil
}

// routes leads to what needs no login, and to what does.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	path, auth := bawnv1connect.NewAuthServiceHandler(&authService{s: s}, callOptions()...)
	mux.Handle("POST "+path, s.limitAttempts(auth))
	mux.Handle("POST /", s.withDevice(s.o.API))
	mux.Handle("GET /", http.HandlerFunc(s.file))
	if len(s.o.Authority) > 0 {
		mux.HandleFunc("GET /bawn-ca.crt", s.authority)
	}
	return mux
}

// Limits of one connection. A request is small, and an answer may be a stream, so
// that the time for both is limited where they are read and written.
const (
	maxHeader  = 32 << 10
	headerTime = 5 * time.Second
	idleTime   = 2 * time.Minute // of a device; see strangerTime
)

// Serve serves connections of l until ctx ends or l breaks, and closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS13,
			NextProtos:     []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.o.Certificate() },
		},
		ConnContext: s.crowd.attend, ConnState: s.crowd.watch,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // its error is that of closing sockets
	defer stop()
	err := server.ServeTLS(&countedListener{l, s.crowd}, "", "")
	s.visits.end(func(visit) bool { return true })
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the web page: %w", err)
}
