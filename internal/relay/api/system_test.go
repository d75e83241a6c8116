package api

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// TestStop: programs of the user's end the relay, which is recorded; devices do not,
// nor are they told of its process.
func TestStop(t *testing.T) {
	ended := 0
	r := newRig(t, func(o *Options) {
		o.Stop = func() { ended++ }
		o.Status = func(context.Context) (*bawnv1.SystemServiceStatusResponse, error) {
			return &bawnv1.SystemServiceStatusResponse{Pid: 7}, nil
		}
	})
	for _, c := range []Caller{{}, phone, viewer} {
		client := bawnv1connect.NewSystemServiceClient(r.as(c), r.url)
		_, stop := client.Stop(t.Context(), &bawnv1.SystemServiceStopRequest{})
		_, status := client.Status(t.Context(), &bawnv1.SystemServiceStatusRequest{})
		if connect.CodeOf(stop) < connect.CodePermissionDenied || connect.CodeOf(status) < connect.CodePermissionDenied || ended != 0 {
			t.Errorf("%+v: %v, %v, ended %d times", c, stop, status, ended)
		}
	}
	client := bawnv1connect.NewSystemServiceClient(r.as(human), r.url)
	if m, err := client.Status(t.Context(), &bawnv1.SystemServiceStatusRequest{}); err != nil || m.GetPid() != 7 {
		t.Errorf("status: %v, %v", m, err)
	}
	if _, err := client.Stop(t.Context(), &bawnv1.SystemServiceStopRequest{}); err != nil || ended != 1 || !r.records.has("stop", "relay") {
		t.Errorf("stop: %v, ended %d times", err, ended)
	}
}
