package supervise

import (
	"fmt"
	"slices"
	"testing"
)

// TestJudgedWords: padding hides no flag.
func TestJudgedWords(t *testing.T) {
	var args []string
	for i := range 2 * maxFirst {
		args = append(args, fmt.Sprint(i))
	}
	if got := judged(args[:maxFirst]); len(got) != maxFirst {
		t.Errorf("of %d words %d are judged", maxFirst, len(got))
	}
	if got := judged(append(slices.Clone(args), "--force")); len(got) != maxFirst+1 || got[maxFirst] != "--force" {
		t.Errorf("a flag behind many words is not judged: %q", got)
	}
}

// TestDifferentNames: what a program may be called is judged once for each last part.
func TestDifferentNames(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{[]string{"/usr/bin/id", "/bin/id", "id"}, []string{"/usr/bin/id"}},
		{[]string{"/usr/bin/id", "./x", "true"}, []string{"/usr/bin/id", "./x", "true"}},
		{[]string{"/bin/busybox", "/bin/id", ""}, []string{"/bin/busybox", "/bin/id"}},
	} {
		if got := different(slices.Clone(c.names)); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q; want %q", c.names, got, c.want)
		}
	}
}
