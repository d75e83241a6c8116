package secrets

import "testing"

// TestUnbound: Bawn itself reads what is kept for it, and nothing that is for
// guests.
func TestUnbound(t *testing.T) {
	v := open(t, options(t))
	set(t, v, "key", "value-number-one")
	set(t, v, "notices", "value-number-two")
	if err := v.Bind(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"notices": "value-number-two", "key": "", "none": ""} {
		s, err := v.Unbound(t.Context(), name)
		if string(s.Reveal()) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %d bytes, %v", name, len(s.Reveal()), err)
		}
	}
}
