package dockerapi

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writes has the session's guest write what containers change.
func writes(r *rig, o *Options) {
	withGuest(r, o)
	o.Write = WriteBy(r.guest, writerInside)
}

const writerInside = "/run/bawn/bawn"

// file makes a file of the workspace.
func (r *rig) file(name, text string) {
	r.t.Helper()
	at := filepath.Join(r.workspace, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// has wants a file of the workspace, "" for none.
func (r *rig) has(name, want string) {
	r.t.Helper()
	got, err := os.ReadFile(filepath.Join(r.workspace, name))
	if want == "" && os.IsNotExist(err) {
		return
	}
	if err != nil || string(got) != want {
		r.t.Errorf("%s is %q, %v; want %q", name, got, err, want)
	}
}

// What a container writes is in the workspace when "docker run" returns.
func TestContainersWrite(t *testing.T) {
	r := newRig(t, writes)
	r.file("kept", "kept")
	r.file("changed", "old")
	r.file("gone", "gone")
	r.file("dir/below", "below")
	out, err := r.docker("run", "--rm", "-v", r.workspace+":/w", "-w", "/w", busybox, "sh", "-c",
		"cat dir/below; echo -n new > changed; rm gone; mkdir -p made/deep; echo -n made > made/deep/file; chmod 755 made/deep/file; ln -s deep/file made/link; ln made/deep/file second")
	if err != nil || out != "below" {
		t.Fatalf("%v: %s", err, out)
	}
	r.has("kept", "kept")
	r.has("changed", "new")
	r.has("gone", "")
	r.has("made/deep/file", "made")
	r.has("made/link", "made")
	r.has("second", "made")
	if st, err := os.Stat(filepath.Join(r.workspace, "made/deep/file")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", st, err)
	}
	if status, answer := r.call("GET", "/containers/json?all=1", nil); status != http.StatusOK || strings.TrimSpace(string(answer)) != "[]" {
		t.Errorf("after --rm: %d %s", status, answer)
	}
}
