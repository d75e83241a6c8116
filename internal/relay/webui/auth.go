package webui

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/redact"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// callOptions are those of every service at this page. Bodies have been read
// already; what they unpack to is limited too.
func callOptions() []connect.HandlerOption {
	return []connect.HandlerOption{connect.WithReadMaxBytes(maxBody)}
}

// riteTime is how long a ceremony may take.
const riteTime = 5 * time.Minute

// How many ceremonies may be under way.
const (
	maxRites       = 1000
	maxRitesOfPeer = 20 // of one network: one more takes the place of its oldest
)

// A rite is a ceremony of WebAuthn that has begun.
type rite struct {
	session webauthn.SessionData
	device  Device // that is being paired, or that touches its passkey
	codes   uint64 // of the pairing; 0 for a login or a touch
	purpose string // of a touch; "" for a pairing or a login
	peer    netip.Prefix
	number  uint64
	expires time.Time
}

type rites struct {
	mu   sync.Mutex
	next uint64
	byID map[string]rite
}

// begin keeps a rite and returns its ID; ok is false where there are too many.
func (r *rites) begin(one rite, now time.Time) (id string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, old := range r.byID {
		if !now.Before(old.expires) {
			delete(r.byID, id)
		}
	}
	r.makeRoom(one.peer)
	if len(r.byID) >= maxRites {
		return "", false
	}
	if r.byID == nil {
		r.byID = map[string]rite{}
	}
	r.next++
	one.expires, one.number = now.Add(riteTime), r.next
	id = rand.Text()
	r.byID[id] = one
	return id, true
}

// makeRoom ends the oldest rite of a network that has as many as it may.
func (r *rites) makeRoom(peer netip.Prefix) {
	oldest, n := "", 0
	for id, one := range r.byID {
		if one.peer != peer {
			continue
		}
		if n++; oldest == "" || one.number < r.byID[oldest].number {
			oldest = id
		}
	}
	if n >= maxRitesOfPeer {
		delete(r.byID, oldest)
	}
}

// take returns a rite, once.
func (r *rites) take(id string, now time.Time) (rite, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.byID[id]
	delete(r.byID, id)
	return one, ok && now.Before(one.expires)
}

// authService lets browsers in.
type authService struct{ s *Server }

var _ bawnv1connect.AuthServiceHandler = (*authService)(nil)

// What everybody who fails is told: it does not say which part was wrong.
var (
	errCode    = connect.NewError(connect.CodePermissionDenied, errors.New("this code is not good (any more); \"bawn pair\" makes a new one"))
	errPasskey = connect.NewError(connect.CodePermissionDenied, errors.New("this passkey is not known here; pair the device with \"bawn pair\""))
	errBusy    = connect.NewError(connect.CodeResourceExhausted, errors.New("too many are logging in; wait a few minutes"))
	errCopied  = errors.New("its counter went back: there may be a copy of it")
	errInside  = connect.NewError(connect.CodeInternal, errors.New("the relay could not do this; see its log"))
)

func requestOf(ctx context.Context) *http.Request {
	r, ok := ctx.Value(requestKey{}).(*http.Request)
	if !ok {
		return &http.Request{Header: http.Header{}}
	}
	return r
}

// denied records a refusal and passes the error on that the peer is told.
func (a *authService) denied(ctx context.Context, what, why string, told error) error {
	a.s.refusals.add(requestOf(ctx), what, why)
	return told
}

// failed logs what only the log may know.
func (a *authService) failed(err error) error {
	a.s.o.Log.Error("web page", "error", err)
	return errInside
}

func (a *authService) record(ctx context.Context, operation string, d Device, why string) error {
	e := event(requestOf(ctx), operation, "device "+d.Name, bawn.Allow, why)
	e.Source = "user"
	e.Details["device"] = d.ID
	return a.s.o.Recorder.Record(ctx, e)
}

// Me is the service's.
func (a *authService) Me(ctx context.Context, _ *bawnv1.AuthServiceMeRequest) (*bawnv1.AuthServiceMeResponse, error) {
	_, one, ok := a.s.logins.find(requestOf(ctx))
	if !ok {
		return &bawnv1.AuthServiceMeResponse{}, nil
	}
	d, ok := a.s.devices.get(one.Device)
	if !ok {
		return &bawnv1.AuthServiceMeResponse{}, nil
	}
	return meOf(d), nil
}

func meOf(d Device) *bawnv1.AuthServiceMeResponse {
	return &bawnv1.AuthServiceMeResponse{LoggedIn: true, Device: d.ID, Name: d.Name, ReadOnly: d.ReadOnly}
}

// BeginPair is the service's.
func (a *authService) BeginPair(ctx context.Context, m *bawnv1.AuthServiceBeginPairRequest) (*bawnv1.AuthServiceBeginPairResponse, error) {
	codes, ok := a.s.pairing.try(m.GetCode(), a.s.o.Now())
	if !ok {
		return nil, a.denied(ctx, opPair, "a pairing code was wrong, too old or used", errCode)
	}
	handle := make([]byte, 32)
	rand.Read(handle)
	d := Device{Handle: handle}
	options, session, err := a.s.passkeys.BeginRegistration(&d)
	if err != nil {
		return nil, a.failed(err)
	}
	id, text, err := a.beginRite(ctx, rite{session: *session, device: d, codes: codes}, options)
	return &bawnv1.AuthServiceBeginPairResponse{Ceremony: id, Options: text}, err
}

func (a *authService) beginRite(ctx context.Context, one rite, options any) (id, text string, err error) {
	one.peer = network(peerOf(requestOf(ctx)))
	raw, err := json.Marshal(options)
	if err != nil {
		return "", "", a.failed(err)
	}
	id, ok := a.s.rites.begin(one, a.s.o.Now())
	if !ok {
		return "", "", errBusy
	}
	return id, string(raw), nil
}

// FinishPair is the service's. The code is spent once the passkey is in order,
// so that a human who cancels the browser's dialog may try again.
func (a *authService) FinishPair(ctx context.Context, m *bawnv1.AuthServiceFinishPairRequest) (*bawnv1.AuthServiceFinishPairResponse, error) {
	name, err := deviceName(m.GetName())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	one, ok := a.s.rites.take(m.GetCeremony(), a.s.o.Now())
	if !ok || one.codes == 0 {
		return nil, a.denied(ctx, opPair, "a ceremony is unknown, used or too old", errCode)
	}
	d := one.device
	if err := a.newPasskey(&d, one.session, m.GetCredential()); err != nil {
		return nil, a.denied(ctx, opPair, told(err), errCode)
	}
	now := a.s.o.Now()
	if d.ReadOnly, ok = a.s.pairing.spend(one.codes, now); !ok {
		return nil, a.denied(ctx, opPair, "the pairing code was used or replaced meanwhile", errCode)
	}
	d.Name, d.Paired, d.Seen = name, now, now
	if err := a.record(ctx, opPair, d, "paired with a code of \"bawn pair\""); err != nil {
		return nil, a.failed(err)
	}
	if d, err = a.s.devices.add(ctx, d); err != nil {
		return nil, a.failed(err)
	}
	return &bawnv1.AuthServiceFinishPairResponse{Me: meOf(d)}, a.letIn(ctx, d)
}

// newPasskey checks what the browser made and puts it into d.
func (a *authService) newPasskey(d *Device, session webauthn.SessionData, text string) error {
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(text))
	if err != nil {
		return err
	}
	credential, err := a.s.passkeys.CreateCredential(d, session, parsed)
	if err != nil {
		return err
	}
	if _, taken := a.s.devices.byCredential(credential.ID); taken {
		return errors.New("this passkey is of another device")
	}
	d.Credential = *credential
	return nil
}

// told returns what an error of WebAuthn says, for the log.
func told(err error) string {
	var p *protocol.Error
	if errors.As(err, &p) {
		return clip("passkey: "+p.Details, 200)
	}
	return clip("passkey: "+err.Error(), 200)
}

const maxName = 64 // characters

// deviceName reads the name that a human gave.
func deviceName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" || utf8.RuneCountInString(name) > maxName || redact.Visible(name) != name {
		return "", fmt.Errorf("name %q can't be shown; want 1 to %d visible characters", clip(name, 200), maxName)
	}
	return name, nil
}

// letIn sets the cookie.
func (a *authService) letIn(ctx context.Context, d Device) error {
	c, err := a.s.logins.begin(ctx, d.ID)
	if err != nil {
		return a.failed(err)
	}
	return setCookie(ctx, c)
}

func setCookie(ctx context.Context, c *http.Cookie) error {
	call, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok {
		return errInside
	}
	call.ResponseHeader().Add("Set-Cookie", c.String())
	return nil
}

// BeginLogin is the service's. It names no passkey, so a stranger learns
// nothing of the devices.
func (a *authService) BeginLogin(ctx context.Context, _ *bawnv1.AuthServiceBeginLoginRequest) (*bawnv1.AuthServiceBeginLoginResponse, error) {
	options, session, err := a.s.passkeys.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, a.failed(err)
	}
	id, text, err := a.beginRite(ctx, rite{session: *session}, options)
	return &bawnv1.AuthServiceBeginLoginResponse{Ceremony: id, Options: text}, err
}

// FinishLogin is the service's.
func (a *authService) FinishLogin(ctx context.Context, m *bawnv1.AuthServiceFinishLoginRequest) (*bawnv1.AuthServiceFinishLoginResponse, error) {
	one, ok := a.s.rites.take(m.GetCeremony(), a.s.o.Now())
	if !ok || one.codes != 0 || one.purpose != "" {
		return nil, a.denied(ctx, opLogin, "a ceremony is unknown, used or too old", errPasskey)
	}
	credential, d, err := a.checkPasskey(one.session, m.GetCredential())
	if err != nil {
		return nil, a.denied(ctx, opLogin, told(err), errPasskey)
	}
	if err := a.record(ctx, opLogin, d, "logged in with its passkey"); err != nil {
		return nil, a.failed(err)
	}
	now := a.s.o.Now()
	d, err = a.s.devices.change(ctx, d.ID, func(d *Device) { d.Credential, d.Seen = *credential, now })
	if err != nil {
		return nil, a.failed(err)
	}
	return &bawnv1.AuthServiceFinishLoginResponse{Me: meOf(d)}, a.letIn(ctx, d)
}

// checkPasskey finds the device that signed. A counter that went back means
// that there are two of one passkey: neither gets in.
func (a *authService) checkPasskey(session webauthn.SessionData, text string) (*webauthn.Credential, Device, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(text))
	if err != nil {
		return nil, Device{}, err
	}
	var d Device
	find := func(id, _ []byte) (webauthn.User, error) {
		var ok bool
		if d, ok = a.s.devices.byCredential(id); !ok {
			return nil, errors.New("no device has this passkey")
		}
		return &d, nil
	}
	_, credential, err := a.s.passkeys.ValidatePasskeyLogin(find, session, parsed)
	if err != nil {
		return nil, Device{}, err
	}
	if credential.Authenticator.CloneWarning {
		return nil, Device{}, errCopied
	}
	return credential, d, nil
}

// Logout is the service's.
func (a *authService) Logout(ctx context.Context, _ *bawnv1.AuthServiceLogoutRequest) (*bawnv1.AuthServiceLogoutResponse, error) {
	id, one, ok := a.s.logins.find(requestOf(ctx))
	if ok {
		err := a.s.logins.end(ctx, func(other string, _ login) bool { return other == id })
		a.s.visits.end(func(v visit) bool { return v.login == id })
		if d, there := a.s.devices.get(one.Device); there && err == nil {
			err = a.record(ctx, opLogout, d, "logged out")
		}
		if err != nil {
			return nil, a.failed(err)
		}
	}
	return &bawnv1.AuthServiceLogoutResponse{}, setCookie(ctx, cookie("", 0))
}
