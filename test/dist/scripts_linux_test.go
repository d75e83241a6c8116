package dist

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// shellLine is the first line of a shell's script.
var shellLine = regexp.MustCompile(`^#!/(usr/bin/env |bin/)(ba)?sh`)

// TestScripts has shellcheck read every script of the project.
func TestScripts(t *testing.T) {
	testenv.Need(t, "shellcheck", "git")
	list := exec.Command("git", "ls-files", "-z", "../..")
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"--severity=warning", "--format=gcc", "--source-path=" + filepath.Join("..", "..")}
	none := len(words)
	for name := range strings.SplitSeq(string(text), "\x00") {
		if strings.Contains(name, "testdata/") || name == "" {
			continue
		}
		script, err := os.ReadFile(name)
		if err == nil && shellLine.Match(bytes.SplitN(script, []byte("\n"), 2)[0]) {
			words = append(words, name)
		}
	}
	if len(words) < none+10 {
		t.Fatalf("only %q are scripts", words[none:])
	}
	if out, err := exec.Command("shellcheck", words...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
