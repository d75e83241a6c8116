package first_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	_ "github.com/bawn-dev/bawn/cmd/bawn/first"
	_ "github.com/bawn-dev/bawn/internal/cli" // all else that bawn links
)

// processor asks the processor for two of its features, and imports nothing: it is
// initialised first, and takes no time.
const processor = "github.com/klauspost/compress/internal/cpuinfo"

// TestComesFirst shows that no other package of the house is initialised, and
// nothing that is linked besides the standard library, before the short way is
// tried. The control is how many packages follow.
func TestComesFirst(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before, after, found := strings.Cut(string(out), "init github.com/bawn-dev/bawn/cmd/bawn/first ")
	if !found {
		t.Fatalf("it is not initialised: %s", out)
	}
	if foreign := slices.DeleteFunc(foreign(before), func(name string) bool { return name == processor }); len(foreign) > 0 {
		t.Errorf("initialised before: %q", foreign)
	}
	if n := len(foreign(after)); n < 10 {
		t.Errorf("control: %d packages follow", n)
	}
}

// foreign are the packages in a trace that are not of the standard library.
func foreign(trace string) (list []string) {
	for line := range strings.Lines(trace) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "init" && strings.Contains(strings.SplitN(words[1], "/", 2)[0], ".") {
			list = append(list, words[1])
		}
	}
	return list
}
