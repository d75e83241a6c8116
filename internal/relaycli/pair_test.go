package relaycli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"
	"rsc.io/qr"

	"github.com/bawn-dev/bawn/internal/verb"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// paired is a relay's devices.
type paired struct {
	bawnv1connect.DeviceServiceClient
	err     error
	asked   *bawnv1.DeviceServicePairRequest
	revoked string
}

func (p *paired) List(context.Context, *bawnv1.DeviceServiceListRequest) (*bawnv1.DeviceServiceListResponse, error) {
	return &bawnv1.DeviceServiceListResponse{Devices: []*bawnv1.Device{
		{Id: id("ab"), Name: "Anna's phone", Paired: timestamppb.New(noon), Seen: timestamppb.New(noon)},
		{Id: id("ac"), Name: "screen", ReadOnly: true, Paired: timestamppb.New(noon), Seen: timestamppb.New(noon)},
	}}, p.err
}

func (p *paired) Pair(_ context.Context, m *bawnv1.DeviceServicePairRequest) (*bawnv1.DeviceServicePairResponse, error) {
	p.asked = m
	return &bawnv1.DeviceServicePairResponse{Url: "https://localhost:7443/#pair=CODE", Code: "ABCD-EFGH", Expires: timestamppb.New(noon.Add(10 * time.Minute)), Fingerprint: "AA:BB"}, p.err
}

func (p *paired) Revoke(_ context.Context, m *bawnv1.DeviceServiceRevokeRequest) (*bawnv1.DeviceServiceRevokeResponse, error) {
	p.revoked = m.GetId()
	return &bawnv1.DeviceServiceRevokeResponse{}, p.err
}

func TestPair(t *testing.T) {
	none, unreachable := connect.NewError(connect.CodeFailedPrecondition, errors.New("x")), connect.NewError(connect.CodeUnavailable, errors.New("x"))
	for _, tt := range []struct {
		args      []string
		environ   string
		err       error
		code      int
		out, errs string
		revoked   string
	}{
		{args: []string{"pair"}, out: "ABCD-EFGH"},
		{args: []string{"pair"}, out: "https://localhost:7443/#pair=CODE"},
		{args: []string{"pair"}, out: "good once, for 10 minutes"},
		{args: []string{"pair"}, out: "AA:BB"},
		{args: []string{"pair", "--read-only"}, out: "may only look"},
		{args: []string{"pair", "--json"}, out: `"code":"ABCD-EFGH"`},
		{args: []string{"pair", "--list"}, out: "Anna's phone  answer"},
		{args: []string{"pair", "--list", "--json"}, out: `"readOnly":true`},
		{args: []string{"pair", "--revoke", "AB"}, out: "Anna's phone is out", revoked: id("ab")},
		{args: []string{"pair", "--revoke", "a"}, code: verb.ExitUsage, errs: "2 devices begin with"},
		{args: []string{"pair", "--revoke", "z"}, code: verb.ExitUsage, errs: "0 devices begin with"},
		{args: []string{"pair"}, err: none, code: verb.ExitUsage, errs: "serves no web page"},
		{args: []string{"pair"}, err: unreachable, code: verb.ExitUsage, errs: "no relay runs"},
		{args: []string{"pair"}, environ: "BAWN_SESSION=x", code: verb.ExitDenied, errs: "this is a guest"},
		{args: []string{"pair", "__complete", "--revoke", ""}, out: "\tAnna's phone\n", errs: "ShellCompDirectiveNoFileComp"},
		{args: []string{"pair", "x"}, code: verb.ExitInternal, errs: "unknown command"},
	} {
		r, p := newRig(t), &paired{err: tt.err}
		r.env.Environ = []string{tt.environ}
		r.env.Now = func() time.Time { return noon }
		r.env.Devices = func(context.Context) (bawnv1connect.DeviceServiceClient, error) { return p, nil }
		code, out, errs := r.run(tt.args...)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.errs) || tt.errs == "" && errs != "" || p.revoked != tt.revoked {
			t.Errorf("%q: %d %q %q, revoked %q; want %+v", tt.args, code, out, errs, p.revoked, tt)
		}
		if tt.environ != "" && p.asked != nil {
			t.Error("a guest's wish reached the relay")
		}
	}
}

// TestQR reads the drawing back, module by module.
func TestQR(t *testing.T) {
	const text = "https://localhost:7443/#pair=ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var b bytes.Buffer
	if err := drawQR(&b, text); err != nil {
		t.Fatal(err)
	}
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "\x1b[97;40m"), "\x1b[0m")
		for x, c := range []rune(line) {
			for half, light := range []bool{c == '█' || c == '▀', c == '█' || c == '▄'} {
				x, y := x-quiet, 2*n+half-quiet
				if y < code.Size+quiet && light == code.Black(x, y) {
					t.Fatalf("module %d,%d is drawn light %v", x, y, light)
				}
			}
		}
	}
}
