package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv/engine"
)

// TestImage: a plugin may come in an image, named by its content. It sees what
// the image and its manifest hold; the control is the same one without.
func TestImage(t *testing.T) {
	t.Parallel()
	r := newAccount(t, "docker")
	e := engine.Shared(t)
	id := e.Image(t, engine.Busybox)
	r.in.Env = append(r.in.Env, "DOCKER_HOST="+e.Host())
	r.put(t, filepath.Join(r.work, "docs/a"), "a")
	r.put(t, "notes", "n")
	rest := `files.read = ["BIN", "docs"]`
	words := []string{"read=" + r.work + "/docs/a", "write=/workspace/new", "env=HOME", "read=/etc/debian_version", "read=" + r.home + "/notes", "write=" + r.work + "/docs/a"}
	manifest := strings.Replace(r.manifest(rest), "\n", "\nrun.image = \""+id+"\"\n", 1)
	got := r.run(t, append(r.plugin(t, "p", manifest), words...)...)
	could(t, words, got, func(i int) bool { return i < 3 })
	if text, err := os.ReadFile(filepath.Join(r.home, ".local/share/bawn/plugins/p/new")); string(text) != "written" || !strings.Contains(got.out, "yes: /workspace\n") {
		t.Errorf("%q, %v: %.500q", text, err, got.out)
	}
	can(t, "control", r.run(t, append(r.plugin(t, "p", r.manifest(rest)), words[3])...), true)
}
