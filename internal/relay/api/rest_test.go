package api

import (
	"context"
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"

	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// TestExplain: what "bawn policy explain --json" prints becomes the answer, fit
// to be shown; what it refuses is told.
func TestExplain(t *testing.T) {
	const printed = `{"id":null,"verdict":"deny","reason":"a\u001bb","rule":"builtin:x","source":"builtin","canonical":"rm -rf /","contained":true,
		"parts":[{"text":"rm -rf \u202e/","via":["sh"],"verdict":"deny","steps":[{"stage":"rule","verdict":"deny","why":"w"}]}],
		"alternatives":[{"verdict":"ask","change":"in plan mode"}],"suggested_rules":[{"kind":"command","pattern":"rm","verdict":"allow","priority":3,"operations":["exec"]}],
		"trace":[{"stage":"later field"}]}`
	r := newRig(t, func(o *Options) {
		o.Explain = func(_ context.Context, m *bawnv1.PolicyServiceExplainRequest) ([]byte, error) {
			if m.GetAction() != "rm -rf /" {
				return nil, errors.New("can't read \x1b that")
			}
			return []byte(printed), nil
		}
	})
	c := bawnv1connect.NewPolicyServiceClient(r.as(viewer), r.url)
	m, err := c.Explain(t.Context(), &bawnv1.PolicyServiceExplainRequest{Action: "rm -rf /"})
	if err != nil {
		t.Fatal(err)
	}
	if m.GetVerdict() != "deny" || m.GetReason() != `a\x1bb` || m.GetParts()[0].GetText() != `rm -rf \u202e/` || m.GetParts()[0].GetSteps()[0].GetWhy() != "w" ||
		!m.GetContained() || m.GetAlternatives()[0].GetChange() != "in plan mode" || m.GetSuggestedRules()[0].GetPattern() != "rm" || m.GetParts()[0].GetVia()[0] != "sh" {
		t.Errorf("%v", m)
	}
	for _, action := range []string{"", "x"} {
		_, err := c.Explain(t.Context(), &bawnv1.PolicyServiceExplainRequest{Action: action})
		if connect.CodeOf(err) != connect.CodeInvalidArgument || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v; want invalid_argument", action, err)
		}
	}
}

// pages keeps devices.
type pages struct{ revoked []string }

func (p *pages) Devices(context.Context) ([]*bawnv1.Device, error) {
	return []*bawnv1.Device{{Id: "phone"}, {Id: "screen"}}, nil
}
func (p *pages) Revoke(_ context.Context, id, by string) error {
	p.revoked = append(p.revoked, id+" by "+by)
	return nil
}
func (p *pages) Pair(context.Context, bool) (*bawnv1.DeviceServicePairResponse, error) {
	return &bawnv1.DeviceServicePairResponse{Code: "x"}, nil
}
func (p *pages) PushKey() string { return "key" }
func (p *pages) Subscribe(context.Context, string, *bawnv1.DeviceServiceSubscribeRequest) error {
	return nil
}
func (p *pages) Unsubscribe(context.Context, string) error { return nil }

// TestDevices: a device that may only look can take out itself and no other.
func TestDevices(t *testing.T) {
	p := &pages{}
	r := newRig(t, func(o *Options) { o.Devices = p })
	as := func(c Caller) bawnv1connect.DeviceServiceClient {
		return bawnv1connect.NewDeviceServiceClient(r.as(c), r.url)
	}
	if m, err := as(phone).List(t.Context(), &bawnv1.DeviceServiceListRequest{}); err != nil || !m.GetDevices()[0].GetThis() || m.GetDevices()[1].GetThis() {
		t.Errorf("%v %v", m, err)
	}
	if _, err := as(viewer).Revoke(t.Context(), &bawnv1.DeviceServiceRevokeRequest{Id: "phone"}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("it takes another out: %v", err)
	}
	for _, c := range []Caller{viewer, phone} {
		if _, err := as(c).Revoke(t.Context(), &bawnv1.DeviceServiceRevokeRequest{Id: c.Device}); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(p.revoked, ", "); got != "screen by web:screen, phone by web:phone" {
		t.Errorf("revoked %q", got)
	}
	if m, err := as(human).Pair(t.Context(), &bawnv1.DeviceServicePairRequest{}); err != nil || m.GetCode() != "x" {
		t.Errorf("%v %v", m, err)
	}
}

// TestNothingThere: a relay without a web page, a log or sessions says so.
func TestNothingThere(t *testing.T) {
	r := newRig(t)
	_, pair := bawnv1connect.NewDeviceServiceClient(r.as(human), r.url).Pair(t.Context(), &bawnv1.DeviceServicePairRequest{})
	_, verify := bawnv1connect.NewAuditServiceClient(r.as(human), r.url).Verify(t.Context(), &bawnv1.AuditServiceVerifyRequest{})
	_, list := r.sessions(human).List(t.Context(), &bawnv1.SessionServiceListRequest{})
	for err, want := range map[error]connect.Code{pair: connect.CodeFailedPrecondition, verify: connect.CodeUnavailable, list: connect.CodeUnavailable} {
		if connect.CodeOf(err) != want {
			t.Errorf("%v; want %v", err, want)
		}
	}
	if m, err := bawnv1connect.NewSystemServiceClient(r.as(human), r.url).Get(t.Context(), &bawnv1.SystemServiceGetRequest{}); err != nil || m.GetNow() == nil {
		t.Errorf("%v %v", m, err)
	}
}
