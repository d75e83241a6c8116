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

// TestJudgedSubcommand: padding with options hides no subcommand.
func TestJudgedSubcommand(t *testing.T) {
	for name, tt := range map[string]struct{ pad, rest []string }{
		"pairs": {[]string{"-c", "a=b"}, []string{"push", "origin", "main"}}, "flags": {[]string{"-D"}, []string{"push", "image", "more"}},
		"long": {[]string{"--x=y", "-v"}, []string{"push", "image", "--force"}},
	} {
		args := slices.Concat(slices.Repeat(tt.pad, 2*maxFirst), tt.rest)
		got := judged(args)
		if len(got) > 2*maxFirst || !slices.Equal(got[len(got)-len(tt.rest):], tt.rest) || !slices.Equal(got[:2], args[:2]) {
			t.Errorf("%s: %d words end with %q; want %q", name, len(got), got[max(0, len(got)-5):], tt.rest)
		}
	}
	files := slices.Concat([]string{"-rf"}, slices.Repeat([]string{"file"}, 1000)) // the control
	if got := judged(files); !slices.Equal(got, files[:maxFirst]) {
		t.Errorf("of many files: %d words", len(got))
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
