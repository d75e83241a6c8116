package grammar

import "testing"

// TestPrintfIsBounded: a width says how much is printed.
func TestPrintfIsBounded(t *testing.T) {
	for format, want := range map[string]bool{"%5d": true, "1000000000": true, "%1000000000d": false, "%.9999999s": false} {
		if _, err := Parse([]Word{{Text: "printf"}, {Text: format}, {Text: "1"}}); (err == nil) != want {
			t.Errorf("%q: %v, want it proven: %v", format, err, want)
		}
	}
}
