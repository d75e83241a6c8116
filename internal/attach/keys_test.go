package attach

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestParseDetachKeys(t *testing.T) {
	for in, want := range map[string]string{
		"ctrl-],d": "\x1dd", "ctrl-p,ctrl-q": "\x10\x11", "CTRL-A": "\x01", `ctrl-\`: "\x1c", "ctrl-@,x": "\x00x", "none": "", "": "",
	} {
		got, err := ParseDetachKeys(in)
		if err != nil || string(got) != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"d", "ctrl-", "ctrl-ab", "ctrl-1", ",", "ctrl-],", "x,ctrl-]", "ctrl-],é", "alt-x"} {
		if got, err := ParseDetachKeys(in); err == nil {
			t.Errorf("%q is %q", in, got)
		}
	}
}

func TestDetach(t *testing.T) {
	for typed, want := range map[string]struct {
		guest  string
		detach bool
	}{
		"ls\n":                         {"ls\n", false},
		"\x1dd":                        {"", true},
		"ab\x1dd":                      {"ab", true},
		"\x1dx":                        {"\x1dx", false},
		"\x1d\x1dd":                    {"\x1d", true},
		"\x1d\x1d\x1dx":                {"\x1d\x1d\x1dx", false},
		"d\x1d":                        {"d", false}, // held back
		"\x1b[A\x1b[93;5ud":            {"\x1b[A", true},
		"\x1b[93;5u\x1b[100u":          {"", true},
		"\x1b[93;5u\x1b[93;5:3ud":      {"", true}, // a key's release is not a key press
		"\x1b[27;5;93~d":               {"", true},
		"\x1b[93;69ud":                 {"", true}, // with num lock
		"\x1b[93;5u\x1b[93;5:3ux":      {"\x1b[93;5u\x1b[93;5:3ux", false},
		"\x1b[93;6ud":                  {"\x1b[93;6ud", false}, // with shift: another key
		"\x1d\x1b[Ad":                  {"\x1d\x1b[Ad", false},
		"\x1b[200~pasted\x1b[201~":     {"\x1b[200~pasted\x1b[201~", false},
		"\x1b[<0;10;10M\x1b[I\x1bOPé漢": {"\x1b[<0;10;10M\x1b[I\x1bOPé漢", false},
	} {
		d := detacher{keys: DetachKeys("\x1dd")}
		guest, detach := d.feed([]byte(typed))
		if string(guest) != want.guest || detach != want.detach {
			t.Errorf("%q: %q, %v; want %q, %v", typed, guest, detach, want.guest, want.detach)
		}
	}
}

// TestNoKeyIsLost: what does not detach is the guest's, every byte of it.
func TestNoKeyIsLost(t *testing.T) {
	part := rapid.SampledFrom([]string{"\x1d", "d", "x", "\x1b", "[", "93;5u", "\x1b[93;5u", "\x1b[93;5:3u", "\x1b[A", "\xff", "é", "~", "\x1b[27;5;93~"})
	rapid.Check(t, func(t *rapid.T) {
		d := detacher{keys: DetachKeys("\x1dd")}
		var typed, guest []byte
		for _, p := range rapid.SliceOf(part).Draw(t, "typed") {
			typed = append(typed, p...)
			g, detach := d.feed([]byte(p))
			guest = append(guest, g...)
			if detach {
				return
			}
		}
		if guest = append(guest, d.release()...); !bytes.Equal(guest, typed) {
			t.Errorf("typed %q, the guest got %q", typed, guest)
		}
	})
}

func TestWithoutDetachKeys(t *testing.T) {
	d := detacher{}
	if guest, detach := d.feed([]byte("\x1dd\x1b[93;5u")); string(guest) != "\x1dd\x1b[93;5u" || detach {
		t.Errorf("%q, %v", guest, detach)
	}
}
