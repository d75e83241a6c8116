//go:build linux || darwin

package runner

import (
	"errors"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

var errFull = errors.New("the disk is full")

// An ending network is whole, or not, and is closed; nothing else is asked of it.
type ending struct {
	Network
	err    error
	closed bool
}

func (s *ending) Placed() error { return s.err }
func (s *ending) Close() error  { s.closed = true; return nil }

// A maker counts how often a sandbox is begun.
type maker struct {
	sandbox.Provider
	made int
}

var errMade = errors.New("made")

func (m *maker) Start(sandbox.Plan, func(sandbox.Denial)) (sandbox.Guest, error) {
	m.made++
	return nil, errMade
}

// No sandbox is made before what it shows is whole, in any zone.
func TestNothingIsMadeBeforeItIsPlaced(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want error
		made int
	}{"placed": {nil, errMade, 1}, "not placed": {errFull, errFull, 0}} {
		network, provider := &ending{err: tt.err}, &maker{}
		s := &Session{Provider: provider, Network: network}
		log, sig := newDenials(*s, ""), catch()
		_, err := s.run(t.Context(), log, log, sig)
		if !errors.Is(err, tt.want) || provider.made != tt.made || !network.closed {
			t.Errorf("%s: %v, made %d sandboxes, the network is closed: %v", name, err, provider.made, network.closed)
		}
	}
	split := Session{Split: &Split{Network: &ending{err: errFull}}, Network: &ending{}}
	if err := split.awaitPlaces(); !errors.Is(err, errFull) {
		t.Errorf("of the zone of commands: %v", err)
	}
}

// A leaving guest says in which order things end.
type leaving struct {
	sandbox.Guest
	order *[]string
}

func (g leaving) Close() error { *g.order = append(*g.order, "guest"); return nil }

// OnEnd comes after the guest, and without it: a session that made no guest has no end.
func TestOnEndComesAfterTheGuest(t *testing.T) {
	for want, made := range map[string]func(order *[]string) sandbox.Guest{
		"guest, told": func(order *[]string) sandbox.Guest { return leaving{order: order} },
		"":            func(*[]string) sandbox.Guest { return nil },
	} {
		var order []string
		s := &Session{OnEnd: func() { order = append(order, "told") }}
		w := &watch{session: s, guest: made(&order), shut: func() {}}
		w.end()
		if got := strings.Join(order, ", "); got != want {
			t.Errorf("the end is %q; want %q", got, want)
		}
	}
}
