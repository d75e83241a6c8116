package doctor

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// TestRelayIsLookedFor: without bawnd there is no network by name; what the
// machine itself lacks is said first.
func TestRelayIsLookedFor(t *testing.T) {
	other := bawn.Capability{Attribute: sandbox.NetNone, Strength: bawn.Enforced, How: "x"}
	can := bawn.Capability{Attribute: sandbox.NetAllow, Strength: bawn.Enforced, How: "y"}
	cannot := bawn.Capability{Attribute: sandbox.NetAllow, Why: "no nftables", Remedy: "z"}
	missing := bawn.Capability{Attribute: sandbox.NetAllow, Why: "bawnd is not installed beside bawn", Remedy: "install both programs of one release in one directory: go build -o DIR ./cmd/bawn ./cmd/bawnd"}
	for _, tt := range []struct {
		has  bawn.Capability
		err  error
		want bawn.Capability
	}{
		{can, nil, can},
		{can, &remote.MissingError{Path: "/x/bawnd"}, missing},
		{can, errors.New("no /proc"), bawn.Capability{Attribute: sandbox.NetAllow, Why: "no /proc"}},
		{cannot, &remote.MissingError{}, cannot},
		{cannot, nil, cannot},
	} {
		got := relayed([]bawn.Capability{other, tt.has}, func() (string, error) { return "", tt.err })
		if diff := cmp.Diff([]bawn.Capability{other, tt.want}, got); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", tt.err, diff)
		}
	}
	got := Examine().Capabilities // this test has no bawnd beside it
	if i := slices.IndexFunc(got, func(c bawn.Capability) bool { return c.Attribute == sandbox.NetAllow }); i < 0 || got[i].Strength != bawn.Unenforced {
		t.Errorf("the report says %+v", got)
	}
}
