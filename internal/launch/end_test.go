package launch

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/verb"
)

// TestEndIsPlain: what a guest has named acts on no terminal in the line of --json.
func TestEndIsPlain(t *testing.T) {
	const acts = "\u202e\u009b\U000e0041"
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	end := End{Error: &endError{Code: "denied", Message: "x" + acts}, Denials: []jsonDenial{{Resource: "/w/" + acts}}}
	if err := end.Write(&Env{World: verb.World{Stderr: w}}); err != nil {
		t.Error(err)
	}
	w.Close()
	text, err := io.ReadAll(r)
	if got := string(text); err != nil || strings.ContainsAny(got, acts) || strings.Count(got, `\u202e`) != 2 || strings.Count(got, "\n") != 1 {
		t.Errorf("printed %q, %v", got, err)
	}
}
