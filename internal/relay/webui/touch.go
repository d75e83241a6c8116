package webui

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
)

// errTouch is the answer to every touch that does not count.
var errTouch = connect.NewError(connect.CodePermissionDenied, errors.New("this needs a touch of this device's passkey, for exactly this; begin again"))

// BeginTouch begins a ceremony in which a paired device proves that its human is
// there and wants one thing. It returns what navigator.credentials.get needs.
func (s *Server) BeginTouch(ctx context.Context, device, purpose string) (ceremony, options string, err error) {
	d, ok := s.devices.get(device)
	if !ok || purpose == "" {
		return "", "", errTouch
	}
	a := authService{s}
	wanted, session, err := s.passkeys.BeginLogin(&d, webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return "", "", a.failed(err)
	}
	return a.beginRite(ctx, rite{session: *session, device: d, purpose: purpose}, wanted)
}

// FinishTouch returns nil where the device's own passkey was touched in a ceremony that
// was begun by this device and for this purpose. A ceremony counts once.
func (s *Server) FinishTouch(ctx context.Context, device, purpose, ceremony, credential string) error {
	a := authService{s}
	one, ok := s.rites.take(ceremony, s.o.Now())
	if !ok || purpose == "" || one.purpose != purpose || one.device.ID != device {
		return a.denied(ctx, opTouch, "a ceremony is unknown, used, too old or for something else", errTouch)
	}
	d, ok := s.devices.get(device)
	if !ok {
		return a.denied(ctx, opTouch, "the device is not paired any more", errTouch)
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(credential))
	if err != nil {
		return a.denied(ctx, opTouch, told(err), errTouch)
	}
	made, err := s.passkeys.ValidateLogin(&d, one.session, parsed)
	if err == nil && made.Authenticator.CloneWarning {
		err = errCopied
	}
	if err != nil {
		return a.denied(ctx, opTouch, told(err), errTouch)
	}
	now := s.o.Now()
	if _, err = s.devices.change(ctx, d.ID, func(d *Device) { d.Credential, d.Seen = *made, now }); err != nil {
		return a.failed(err)
	}
	return nil
}
