package engine

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// Busybox is a small image: busybox with all its applets, and users.
const Busybox = "bawn-test/busybox:1"

// Image returns the ID ("sha256:…") of an image of ours, made on the first
// call: Busybox, Work or Hour.
func (e *Engine) Image(t testing.TB, reference string) string {
	t.Helper()
	id, err := e.Make(reference)
	if err != nil {
		t.Fatalf("engine: %v", err)
	}
	return id
}

// Make is Image for who runs no test.
func (e *Engine) Make(reference string) (string, error) {
	fill, ok := map[string]func(*layer) error{Busybox: busybox, Work: work, Hour: hour}[reference]
	if !ok {
		return "", fmt.Errorf("unknown image %q; want %q, %q or %q", reference, Busybox, Work, Hour)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.made[reference] == "" {
		id, err := e.build(reference, fill)
		if err != nil {
			return "", fmt.Errorf("image %s: %w", reference, err)
		}
		e.made[reference] = id
	}
	return e.made[reference], nil
}

// build streams a layer to the engine while it is being made.
func (e *Engine) build(reference string, fill func(*layer) error) (string, error) {
	r, w := io.Pipe()
	go func() {
		l := &layer{w: tar.NewWriter(w), has: map[string]bool{}}
		err := fill(l)
		if err == nil {
			err = l.w.Close()
		}
		w.CloseWithError(err)
	}()
	defer r.Close()
	return e.importImage(reference, r, "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", `CMD ["sh"]`)
}

// A layer is a tar stream of an image's files. What is added twice stays as it
// was added first.
type layer struct {
	w   *tar.Writer
	has map[string]bool
}

// dir adds a directory and those above it.
func (l *layer) dir(name string, mode int64) error {
	name = strings.TrimPrefix(path.Clean(name), "/")
	if name == "" || name == "." || l.has[name] {
		return nil
	}
	if err := l.dir(path.Dir(name), 0o755); err != nil {
		return err
	}
	l.has[name] = true
	return l.w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode})
}

// enter notes a file and adds the directories above it; false where it is
// there already.
func (l *layer) enter(name string) (rel string, fresh bool, err error) {
	rel = strings.TrimPrefix(path.Clean(name), "/")
	if l.has[rel] {
		return rel, false, nil
	}
	if err := l.dir(path.Dir(rel), 0o755); err != nil {
		return rel, false, err
	}
	l.has[rel] = true
	return rel, true, nil
}

// file adds a regular file.
func (l *layer) file(name string, mode int64, text []byte) error {
	rel, fresh, err := l.enter(name)
	if err != nil || !fresh {
		return err
	}
	header := tar.Header{Typeflag: tar.TypeReg, Name: rel, Mode: mode, Size: int64(len(text))}
	if err := l.w.WriteHeader(&header); err != nil {
		return err
	}
	_, err = l.w.Write(text)
	return err
}

// link adds a symbolic link.
func (l *layer) link(name, target string) error {
	rel, fresh, err := l.enter(name)
	if err != nil || !fresh {
		return err
	}
	return l.w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: rel, Linkname: target, Mode: 0o777})
}

// skeleton adds what every image has: mount points and users.
func (l *layer) skeleton() error {
	for _, d := range []string{"/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/var/lib", "/workspace"} {
		if err := l.dir(d, 0o755); err != nil {
			return err
		}
	}
	for _, d := range []string{"/tmp", "/var/tmp"} {
		if err := l.dir(d, 0o1777); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"/etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"/etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	} {
		if err := l.file(name, 0o644, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// busybox fills the image Busybox.
func busybox(l *layer) error {
	if err := l.skeleton(); err != nil {
		return err
	}
	program, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	applets, err := exec.Command(program, "--list").Output()
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	if err := l.file("/bin/busybox", 0o755, text); err != nil {
		return err
	}
	for applet := range bytes.Lines(applets) {
		name := strings.TrimSpace(string(applet))
		if err := l.link("/bin/"+name, "busybox"); err != nil {
			return err
		}
	}
	return l.link("/usr/bin/env", "/bin/busybox")
}
