package invocation

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestParse(t *testing.T) {
	tests := []struct {
		argv string
		want Invocation
	}{
		{"sh -c true", Invocation{Shell: "sh", Source: Text, Text: "true"}},
		{"/bin/bash -lc true", Invocation{Shell: "bash", Source: Text, Text: "true", Login: true}},
		{"bash -ic true", Invocation{Shell: "bash", Source: Text, Text: "true", Interactive: true}},
		{"bash -c -e true", Invocation{Shell: "bash", Source: Text, Text: "true", Options: []string{"-e"}}},
		{"bash -ce true zero one", Invocation{Shell: "bash", Source: Text, Text: "true", Options: []string{"-e"}, Params: []string{"zero", "one"}}},
		{"bash -c -- -x", Invocation{Shell: "bash", Source: Text, Text: "-x"}},
		{"bash -euo pipefail -c true", Invocation{Shell: "bash", Source: Text, Text: "true", Options: []string{"-e", "-u", "-o", "pipefail"}}},
		{"bash -euxoc pipefail true", Invocation{Shell: "bash", Source: Text, Text: "true", Options: []string{"-e", "-u", "-x", "-o", "pipefail"}}},
		{"bash +e -c true", Invocation{Shell: "bash", Source: Text, Text: "true", Options: []string{"+e"}}},
		{"bash -O extglob -c true", Invocation{Shell: "bash", Source: Text, Text: "true", Options: []string{"-O", "extglob"}, Odd: true}},
		{"bash -fc true", Invocation{Shell: "bash", Source: Text, Text: "true", Options: []string{"-f"}, Odd: true}},
		{"bash --norc --noprofile -c true", Invocation{Shell: "bash", Source: Text, Text: "true"}},
		{"bash --rcfile /x -c true", Invocation{Shell: "bash", Source: Text, Text: "true"}},
		{"bash --posix -c true", Invocation{Shell: "bash", Source: Text, Text: "true", Options: []string{"--posix"}, Odd: true}},
		{"-bash", Invocation{Shell: "bash", Source: Input, Login: true}},
		{"sh", Invocation{Shell: "sh", Source: Input}},
		{"sh -s a b", Invocation{Shell: "sh", Source: Input, Params: []string{"a", "b"}}},
		{"sh -", Invocation{Shell: "sh", Source: Input}},
		{"sh x.sh -c y", Invocation{Shell: "sh", Source: Script, Script: "x.sh", Params: []string{"-c", "y"}}},
		{"sh -- -c", Invocation{Shell: "sh", Source: Script, Script: "-c"}},
		{"sh -e x.sh", Invocation{Shell: "sh", Source: Script, Script: "x.sh", Options: []string{"-e"}}},
		{"bash --version", Invocation{Shell: "bash", Source: Info, Options: []string{"--version"}}},
		{"zsh -c true", Invocation{Shell: "zsh", Source: Text, Text: "true"}},
	}
	for _, tt := range tests {
		argv := strings.Fields(tt.argv)
		tt.want.Zero = argv[0]
		if tt.want.Params == nil {
			tt.want.Params = []string{}
		}
		got, err := Parse(argv)
		if got.Params == nil {
			got.Params = []string{}
		}
		if err != nil {
			t.Errorf("%s: %v", tt.argv, err)
		} else if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.argv, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, argv := range []string{"", "git status", "sh -c", "bash -o", "bash --rcfile", "bash -c -e"} {
		if got, err := Parse(strings.Fields(argv)); err == nil {
			t.Errorf("%q is %+v; want an error", argv, got)
		}
	}
}

// TestShellsAgree shows that bash takes the text, the script and the
// parameters from where Parse takes them.
func TestShellsAgree(t *testing.T) {
	testenv.Need(t, "bash")
	const show = `printf '%s.' "$0" "$@"; echo "$-" | tr -dc eux`
	for _, argv := range [][]string{
		{"bash", "-c", show}, {"bash", "-c", show, "z", "a", "b c"}, {"bash", "-c", "-e", show, "z"}, {"bash", "-ce", show}, {"bash", "-euo", "pipefail", "-c", show, "z", "-x"},
		{"bash", "-uoc", "pipefail", show, "z"}, {"bash", "-c", "--", show, "-c", "y"}, {"bash", "--norc", "-c", show, "--", "x"},
		{"bash", "-e", "+e", "-c", show}, {"bash", "-c", "+e", show, "z"}, {"bash", "-lc", show},
	} {
		v, err := Parse(argv)
		if err != nil {
			t.Errorf("%q: %v", argv, err)
			continue
		}
		if len(v.Params) == 0 {
			v.Params = []string{"bash"}
		}
		if want, got := run(t, argv), run(t, v.Argv("bash", v.Text)); want != got {
			t.Errorf("%q prints %q, as %q %q", argv, want, v.Argv("bash", v.Text), got)
		}
	}
}

func run(t *testing.T, argv []string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

// FuzzParse looks for panics, and for an argv that means another invocation
// when it is written again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"sh\x00-c\x00true", "bash\x00-euo\x00pipefail\x00-c\x00a\x00b", "-bash", "bash\x00--rcfile\x00x\x00-s\x00y", "sh\x00-", "sh\x00--\x00-c", "bash\x00+O\x00x\x00-c\x00\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(strings.Split(s, "\x00"))
		if err != nil {
			return
		}
		again, err := Parse(v.Argv(v.Shell, v.Text))
		if err != nil {
			t.Fatalf("%+v written again: %v", v, err)
		}
		if again.Source != v.Source || again.Text != v.Text || again.Script != v.Script || !slices.Equal(again.Params, v.Params) || !slices.Equal(again.Options, v.Options) || again.Odd != v.Odd {
			t.Errorf("%+v written again is %+v", v, again)
		}
	})
}
