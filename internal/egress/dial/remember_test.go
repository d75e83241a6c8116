package dial

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"time"
)

// A name that turns to a private address is refused as soon as that is seen,
// and within the time of an answer leads to the address that was judged.
func TestRememberAndRebinding(t *testing.T) {
	at, asked := time.Unix(1e9, 0), 0
	says := netip.MustParseAddr("93.184.216.34")
	var failure error
	lookup := func(context.Context, string) ([]netip.Addr, error) {
		asked++
		return []netip.Addr{says}, failure
	}
	d := &Dialer{Lookup: Remember(lookup, func() time.Time { return at }), Own: func() ([]netip.Addr, error) { return nil, nil }}
	ask := func() (netip.Addr, error) {
		addrs, err := d.permitted(t.Context(), "rebind.test", 443)
		if err != nil {
			return netip.Addr{}, err
		}
		return addrs[0], nil
	}
	public := says
	if got, err := ask(); got != public || err != nil || asked != 1 {
		t.Fatalf("%v, %v, asked %d times", got, err, asked)
	}
	says = netip.MustParseAddr("169.254.169.254")
	at = at.Add(rememberFor - 1)
	if got, err := ask(); got != public || err != nil || asked != 1 {
		t.Errorf("within its time: %v, %v, asked %d times; want the address that was judged", got, err, asked)
	}
	at = at.Add(1)
	for range 3 { // what is remembered by now is refused as well
		var closed *RefusedError
		if got, err := ask(); !errors.As(err, &closed) || asked != 2 {
			t.Errorf("after it: %v, %v, asked %d times; want it refused", got, err, asked)
		}
	}
	at, failure = at.Add(rememberFor), errors.New("no such host")
	for want := 3; want < 6; want++ {
		if _, err := ask(); !errors.Is(err, failure) || asked != want {
			t.Errorf("a failure: %v, asked %d times; want %d", err, asked, want)
		}
	}
	at, failure, says = at.Add(-time.Hour), nil, public // a clock that was put back
	if got, err := ask(); got != public || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestRememberIsBounded(t *testing.T) {
	at := time.Unix(1e9, 0)
	m := memory{now: func() time.Time { return at }, answers: map[string]answer{}}
	addrs := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	for i := range 10 * maxRemembered {
		m.keep(strconv.Itoa(i), addrs, at)
		if len(m.answers) > maxRemembered {
			t.Fatalf("%d answers are kept; want at most %d", len(m.answers), maxRemembered)
		}
	}
	addrs[0] = netip.Addr{}
	last := strconv.Itoa(10*maxRemembered - 1)
	got := m.recall(last)
	if len(got) != 1 || !got[0].IsValid() {
		t.Fatalf("recalled %v; want what was kept", got)
	}
	got[0] = netip.Addr{}
	if !m.recall(last)[0].IsValid() {
		t.Error("who recalls an answer can change it")
	}
}
