package webui

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bawn-dev/bawn"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// Devices returns the paired devices, the oldest first.
func (s *Server) Devices(context.Context) ([]*bawnv1.Device, error) {
	var out []*bawnv1.Device
	for _, d := range s.devices.all() {
		out = append(out, &bawnv1.Device{
			Id: d.ID, Name: d.Name, Paired: timestamppb.New(d.Paired), Seen: timestamppb.New(d.Seen), ReadOnly: d.ReadOnly, Push: d.Push != nil,
		})
	}
	return out, nil
}

// Revoke removes a device's passkey, logins and subscription and closes its connections;
// by is who does it. Where the store fails the device is out as long as this process
// lives.
func (s *Server) Revoke(ctx context.Context, id, by string) error {
	d, ok := s.devices.get(id)
	if !ok {
		return connect.NewError(connect.CodeNotFound, errNoDevice)
	}
	err := errors.Join(
		s.devices.drop(ctx, id),
		s.logins.end(ctx, func(_ string, one login) bool { return one.Device == id }),
	)
	s.visits.end(func(v visit) bool { return v.device == id })
	e := event(&http.Request{}, opRevoke, "device "+d.Name, bawn.Allow, "revoked")
	e.Source, e.Details = "user", map[string]string{"device": id, "by": by}
	return errors.Join(err, s.o.Recorder.Record(ctx, e))
}

// Pair makes codes for one new device; older codes are void.
func (s *Server) Pair(ctx context.Context, readOnly bool) (*bawnv1.DeviceServicePairResponse, error) {
	e := event(&http.Request{}, opPair, "a code for a new device", bawn.Allow, "made for the user at this machine")
	e.Source = "user"
	if err := s.o.Recorder.Record(ctx, e); err != nil {
		return nil, fmt.Errorf("the code can't be recorded: %w", err)
	}
	long, short, expires := s.pairing.open(readOnly, s.o.Now())
	return &bawnv1.DeviceServicePairResponse{
		Url: s.origin + "/#pair=" + long, Code: short, Expires: timestamppb.New(expires), Fingerprint: s.o.Fingerprint,
	}, nil
}
