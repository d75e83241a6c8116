package web_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	v1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
	"github.com/bawn-dev/bawn/web"
)

// policy is the one under which docs/dev/internals/relay-api.md says that the page is served.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// A fixture is a relay that says what a test wants. Its state is guarded by mu.
type fixture struct {
	mu        sync.Mutex
	server    *httptest.Server
	down      bool
	changed   chan struct{} // closed with each change, and replaced
	cut       chan struct{} // closed when the fixture goes down, and replaced
	asked     []*v1.Approval
	answers   []*v1.ApprovalServiceAnswerRequest
	sessions  []*v1.Session
	killed    []string
	undone    []string // sessions for which an undo was asked
	applied   []string // what was asked to be taken over from the copy
	discarded bool     // the copy
	typed     []byte
	devices   []*v1.Device
	logins    map[string]string // cookie → device
	readOnly  bool
	queries   []*v1.AuditServiceQueryRequest
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{changed: make(chan struct{}), cut: make(chan struct{}), logins: map[string]string{}, sessions: twoSessions()}
	mux := http.NewServeMux()
	mux.Handle(bawnv1connect.NewApprovalServiceHandler(approvals{f}))
	mux.Handle(bawnv1connect.NewSessionServiceHandler(sessions{f}))
	mux.Handle(bawnv1connect.NewAuditServiceHandler(log{f: f}))
	mux.Handle(bawnv1connect.NewPolicyServiceHandler(judge{}))
	mux.Handle(bawnv1connect.NewUndoServiceHandler(past{f: f}))
	mux.Handle(bawnv1connect.NewCopyServiceHandler(shelf{f: f}))
	mux.Handle(bawnv1connect.NewDeviceServiceHandler(devices{f: f}))
	mux.Handle(bawnv1connect.NewAuthServiceHandler(entry{f: f}))
	mux.Handle("/", page())
	f.server = httptest.NewServer(f.gate(mux))
	t.Cleanup(func() {
		f.do(func() { f.goDown() })
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

// origin names the server as a browser must: passkeys need a name.
func (f *fixture) origin() string {
	return strings.Replace(f.server.URL, "127.0.0.1", "localhost", 1)
}

// do changes the state and tells those who watch.
func (f *fixture) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fixture) goDown() {
	f.down = true
	close(f.cut)
	f.cut = make(chan struct{})
}

// gate breaks connections while the fixture is down, and asks for a login.
func (f *fixture) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		down, cut := f.down, f.cut
		f.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		api := strings.HasPrefix(r.URL.Path, "/bawn.v1.")
		if api && !strings.Contains(r.URL.Path, "AuthService") && f.deviceOf(r.Header) == "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			w.Write([]byte(`{"code":"unauthenticated","message":"log in"}`))
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-cut:
				cancel()
			case <-ctx.Done():
			}
		}()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func page() http.Handler {
	files := http.FileServerFS(web.Files())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}

func (f *fixture) deviceOf(h http.Header) string {
	c, err := (&http.Request{Header: h}).Cookie("bawn-fixture")
	if err != nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logins[c.Value]
}

// watch calls say at first, after each change, and ends with ctx.
func (f *fixture) watch(ctx context.Context, say func() error) error {
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		if err := say(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// entry lets everybody in who has a passkey and, the first time, the code.
type entry struct {
	bawnv1connect.UnimplementedAuthServiceHandler
	f *fixture
}

func (e entry) Me(ctx context.Context, _ *v1.AuthServiceMeRequest) (*v1.AuthServiceMeResponse, error) {
	info, _ := connect.CallInfoForHandlerContext(ctx)
	id := e.f.deviceOf(info.RequestHeader())
	if id == "" {
		return &v1.AuthServiceMeResponse{}, nil
	}
	return e.f.me(id), nil
}

func (f *fixture) me(id string) *v1.AuthServiceMeResponse {
	return &v1.AuthServiceMeResponse{LoggedIn: true, Device: id, Name: "the test's phone", ReadOnly: f.readOnly}
}

const goodCode = "k3v9-2mxq"

func challenge() string { return strings.ToLower(rand.Text()) }

func (e entry) BeginPair(_ context.Context, r *v1.AuthServiceBeginPairRequest) (*v1.AuthServiceBeginPairResponse, error) {
	if r.Code != goodCode {
		return nil, connect.NewError(connect.CodePermissionDenied, errWrongCode)
	}
	return &v1.AuthServiceBeginPairResponse{Ceremony: "c1", Options: `{"publicKey":{"rp":{"name":"Bawn","id":"localhost"},"user":{"id":"YmF3bg","name":"bawn","displayName":"Bawn"},"challenge":"` + challenge() +
		`","pubKeyCredParams":[{"type":"public-key","alg":-7},{"type":"public-key","alg":-257}],"authenticatorSelection":{"residentKey":"required","userVerification":"required"}}}`}, nil
}

func (e entry) FinishPair(ctx context.Context, r *v1.AuthServiceFinishPairRequest) (*v1.AuthServiceFinishPairResponse, error) {
	if !strings.Contains(r.Credential, `"attestationObject"`) {
		return nil, connect.NewError(connect.CodePermissionDenied, errNoPasskey)
	}
	e.f.do(func() { e.f.devices = append(e.f.devices, &v1.Device{Id: "d1", Name: r.Name, This: true}) })
	return &v1.AuthServiceFinishPairResponse{Me: e.login(ctx)}, nil
}

func (e entry) BeginLogin(context.Context, *v1.AuthServiceBeginLoginRequest) (*v1.AuthServiceBeginLoginResponse, error) {
	return &v1.AuthServiceBeginLoginResponse{Ceremony: "c2", Options: `{"publicKey":{"rpId":"localhost","userVerification":"required","challenge":"` + challenge() + `"}}`}, nil
}

func (e entry) FinishLogin(ctx context.Context, r *v1.AuthServiceFinishLoginRequest) (*v1.AuthServiceFinishLoginResponse, error) {
	if !strings.Contains(r.Credential, `"authenticatorData"`) {
		return nil, connect.NewError(connect.CodePermissionDenied, errNoPasskey)
	}
	return &v1.AuthServiceFinishLoginResponse{Me: e.login(ctx)}, nil
}

func (e entry) login(ctx context.Context) *v1.AuthServiceMeResponse {
	cookie := rand.Text()
	e.f.do(func() { e.f.logins[cookie] = "d1" })
	info, _ := connect.CallInfoForHandlerContext(ctx)
	info.ResponseHeader().Set("Set-Cookie", "bawn-fixture="+cookie+"; Path=/; HttpOnly; SameSite=Strict")
	return e.f.me("d1")
}

func (e entry) Logout(context.Context, *v1.AuthServiceLogoutRequest) (*v1.AuthServiceLogoutResponse, error) {
	e.f.do(func() { clear(e.f.logins) })
	return &v1.AuthServiceLogoutResponse{}, nil
}

// devices are those that were paired.
type devices struct {
	bawnv1connect.UnimplementedDeviceServiceHandler
	f *fixture
}

func (d devices) List(context.Context, *v1.DeviceServiceListRequest) (*v1.DeviceServiceListResponse, error) {
	d.f.mu.Lock()
	defer d.f.mu.Unlock()
	return &v1.DeviceServiceListResponse{Devices: slices.Clone(d.f.devices)}, nil
}

func (d devices) Revoke(_ context.Context, r *v1.DeviceServiceRevokeRequest) (*v1.DeviceServiceRevokeResponse, error) {
	d.f.do(func() {
		d.f.devices = slices.DeleteFunc(d.f.devices, func(x *v1.Device) bool { return x.Id == r.Id })
	})
	return &v1.DeviceServiceRevokeResponse{}, nil
}
