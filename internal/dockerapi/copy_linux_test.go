package dockerapi

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes a directory of the workspace with n names, of each kind in turn.
func (r *rig) tree(name string, n int) string {
	r.t.Helper()
	dir := filepath.Join(r.workspace, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	for i := range n {
		var err error
		switch at := filepath.Join(dir, fmt.Sprint(i)); i % 3 {
		case 0:
			err = os.Symlink("/etc/passwd", at)
		case 1:
			err = os.Mkdir(at, 0o755)
		case 2:
			err = os.WriteFile(at, nil, 0o644)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return dir
}

// mounting asks for a container with these directories.
func (r *rig) mounting(name string, dirs ...string) (int, string) {
	r.t.Helper()
	var binds []string
	for i, d := range dirs {
		binds = append(binds, fmt.Sprintf("%s:/m%d:ro", d, i))
	}
	status, answer := r.call("POST", "/containers/create?name="+name, dict{"Image": busybox, "HostConfig": dict{"Binds": binds, "Memory": 8 << 20}})
	return status, string(answer)
}

// tooMuch wants a refusal that leaves no copy.
func (r *rig) tooMuch(want string, copies, status int, answer string) {
	r.t.Helper()
	if status != http.StatusForbidden || !strings.Contains(answer, RuleLimit) || !strings.Contains(answer, want) {
		r.t.Errorf("%d %s; want a refusal by %s because of %s", status, answer, RuleLimit, want)
	}
	if left, _ := filepath.Glob(filepath.Join(r.broker.o.Dir, "mounts-*")); len(left) != copies {
		r.t.Errorf("%d containers have copies; want %d", len(left), copies)
	}
}

const (
	ofOne = "the mounts of a container, or the files of a build, hold more"
	ofAll = "the mounts of all containers"
)

// What mounts copy to the host's disk is bounded for a container with all of its
// mounts, whatever the entries are.
func TestCopiesOfOneContainer(t *testing.T) {
	r := newRig(t, nil)
	r.broker.store.each = load{40, 1 << 20}
	status, answer := r.mounting("fits", r.tree("fits", 30)) // and the directory itself
	if status != http.StatusCreated {
		t.Fatalf("control: %d %s", status, answer)
	}
	links := filepath.Join(r.workspace, "links")
	if err := os.Mkdir(links, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if err := os.Symlink(strings.Repeat("x", 100), filepath.Join(links, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	status, answer = r.mounting("links", links)
	r.tooMuch(ofOne, 1, status, answer)
	status, answer = r.mounting("both", r.tree("a", 25), r.tree("b", 25))
	r.tooMuch(ofOne, 1, status, answer)
	large := filepath.Join(r.workspace, "large")
	if err := os.WriteFile(large, make([]byte, 600<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, answer := r.mounting("once", large); status != http.StatusCreated {
		t.Errorf("control: %d %s", status, answer)
	}
	status, answer = r.mounting("twice", large, large)
	r.tooMuch(ofOne, 2, status, answer)
	deep := filepath.Join(r.workspace, "deep")
	if err := os.MkdirAll(deep+strings.Repeat("/d", maxCopyDepth), 0o755); err != nil {
		t.Fatal(err)
	}
	r.broker.store.each = containerLoad
	status, answer = r.mounting("deep", deep)
	r.tooMuch("within each other", 2, status, answer)
}

// The copies of all containers together are bounded, and are given back with
// their container, whatever rights the guest's directories have.
func TestCopiesOfOneSession(t *testing.T) {
	r := newRig(t, nil)
	r.broker.store.most = load{100, 1 << 20}
	dir := r.tree("dir", 30)
	if err := os.Chmod(filepath.Join(dir, "1"), 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	for round := range 3 {
		for i := range 3 {
			if status, answer := r.mounting(fmt.Sprint("c", i), dir); status != http.StatusCreated {
				t.Fatalf("round %d: %d %s", round, status, answer)
			}
		}
		status, answer := r.mounting("more", dir)
		r.tooMuch(ofAll, 3, status, answer)
		copies, _ := filepath.Glob(filepath.Join(r.broker.o.Dir, "mounts-*", "0"))
		for _, c := range copies {
			if st, err := os.Stat(c); err != nil || st.Mode().Perm() != 0o755 {
				t.Errorf("a copy that only root can remove: %v %v", st, err)
			}
		}
		if round == 1 {
			r.must("POST", "/containers/prune", nil, nil)
			continue
		}
		for i := range 3 {
			r.must("DELETE", fmt.Sprint("/containers/c", i), nil, nil)
		}
	}
	if used := r.broker.store.used; used != (load{}) {
		t.Errorf("%+v is used when no container is left", used)
	}
	large := filepath.Join(r.workspace, "large")
	if err := os.WriteFile(large, make([]byte, 600<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, answer := r.mounting("one", large); status != http.StatusCreated {
		t.Fatalf("control: %d %s", status, answer)
	}
	status, answer := r.mounting("two", large)
	r.tooMuch(ofAll, 1, status, answer)
}

// What a session may have is not what one container may have, many times over.
func TestCopyBounds(t *testing.T) {
	s := newStore()
	if s.each != (load{20_000, 256 << 20}) || s.most != (load{100_000, 1 << 30}) {
		t.Errorf("bounds %+v and %+v; docs/docker-api.md says others", s.each, s.most)
	}
}
