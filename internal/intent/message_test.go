package intent

import "testing"

func TestRepliesSayOneThing(t *testing.T) {
	for name, m := range map[string]interface{ Valid() error }{
		"an empty reply": &Reply{}, "two": &Reply{Started: true, Stopped: 20},
		"a state alone": &Reply{State: &State{}}, "an empty update": &Update{}, "two updates": &Update{Signal: 2, Rows: 3},
	} {
		if m.Valid() == nil {
			t.Errorf("%s is valid", name)
		}
	}
	for _, m := range []interface{ Valid() error }{
		&Reply{Exit: &Exit{}, State: &State{}}, &Reply{Denied: &Refusal{}}, &Update{Rows: 1, Cols: 2}, &Update{Signal: 15},
	} {
		if err := m.Valid(); err != nil {
			t.Error(err)
		}
	}
}
