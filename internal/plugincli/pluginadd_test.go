package plugincli

import (
	"errors"
	"testing"

	"github.com/bawn-dev/bawn/internal/plugin"
)

// TestOfFlags: what is wrong with flags is said of flags.
func TestOfFlags(t *testing.T) {
	for text, want := range map[string]string{
		"run.npx = 'server'":                 `--npx: it is "server"; want PACKAGE@VERSION with the whole version, such as "server@1.2.3"`,
		"":                                   `the command: it states 0 of command, npx, uvx and go; want one of them`,
		"secrets=['a b']\nrun.command=['x']": "",
	} {
		_, err := plugin.Parse(flagsFile, "x", []byte(text))
		if err == nil {
			t.Fatalf("%q is taken", text)
		}
		if got := ofFlags(err); want != "" && got != want || want == "" && got[:10] != "--secret: " {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := ofFlags(errors.New("it is wrong: so")); got != "it is wrong: so" {
		t.Errorf("got %q", got)
	}
}
