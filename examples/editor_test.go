package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// TestEditorFiles: each file can be read by what it is for.
func TestEditorFiles(t *testing.T) {
	for _, name := range []string{"tasks.json", "devcontainer/devcontainer.json", "devcontainer/bawn/devcontainer-feature.json"} {
		var v map[string]any
		if err := json.Unmarshal(file(t, name), &v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var mise struct {
		Tasks map[string]struct{ Run string }
	}
	if err := toml.Unmarshal(file(t, "mise.toml"), &mise); err != nil || len(mise.Tasks) != 2 {
		t.Errorf("mise.toml: %v, %d tasks", err, len(mise.Tasks))
	}
	for _, name := range []string{"envrc", "devcontainer/bawn/install.sh"} {
		if out, err := exec.Command("sh", "-n", "editor/"+name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("editor/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
