package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// podman starts Podman's service with everything of it in a directory of the
// test's, in network and mount namespaces of its own.
func podman(t *testing.T) (socket string) {
	t.Helper()
	testenv.Need(t, "root", "podman")
	dir := placeFor(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	files := map[string]string{
		"storage.conf": fmt.Sprintf("[storage]\ndriver = \"overlay\"\nrunroot = %q\ngraphroot = %q\n", at("run"), at("root")),
		// runc, and limits below those of this test: crun and the defaults want
		// more than some machines give.
		"containers.conf": "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n",
	}
	for name, text := range files {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, err := testenv.Podman()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	defer func() {
		if t.Failed() {
			t.Logf("podman: %s", &log)
		}
	}()
	cmd := exec.Command(program, "system", "service", "--time", "0", "unix://"+at("s"))
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+at("containers.conf"), "CONTAINERS_STORAGE_CONF="+at("storage.conf"), "TMPDIR="+dir) // of which it leaves archives
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &log, &log, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was killed
	})
	testenv.Until(t, "podman", func() bool { _, err := os.Stat(at("s")); return err == nil })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(at("s"), anybody, anybody)); err != nil {
		t.Fatal(err)
	}
	return at("s")
}

// busybox makes an image of the machine's busybox at an engine.
func busybox(t *testing.T, socket string) (id string) {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	add := func(h tar.Header, text []byte) {
		h.Size = int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"bin/", "etc/", "dev/", "proc/", "sys/", "run/", "tmp/", "var/"} {
		add(tar.Header{Typeflag: tar.TypeDir, Name: d, Mode: map[bool]int64{true: 0o1777, false: 0o755}[d == "tmp/"]}, nil)
	}
	add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, text)
	for _, a := range []string{"sh", "id", "touch", "mkdir", "ls", "cat", "grep", "sleep"} {
		add(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + a, Linkname: "busybox", Mode: 0o777}, nil)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := connect("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.client.ImageImport(context.Background(), client.ImageImportSource{Source: &layer, SourceName: "-"}, "bb", client.ImageImportOptions{Tag: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if id, err = imported(r); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestPodman makes sessions with Podman's service in place of Docker's, as root
// and as anybody.
func TestPodman(t *testing.T) {
	socket := podman(t)
	image := busybox(t, socket)
	for _, uid := range []int{0, anybody} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			a := act{Options: Options{Host: socket, Image: image}, Text: "id -u; touch made $HOME/x /tmp/z && echo own; mkdir .vscode || echo no; ls -A; grep -c ^Cap.*0000000000000000 /proc/self/status; ls /proc/acpi | grep -c ."}
			a.Request.Environ = []string{"HOME=/home/ada"}
			a.Request.Session.Isolation.Network, a.Request.Relay = bawn.NetworkAllowlist, true
			out, err := a.command(t, uid).CombinedOutput()
			for _, want := range []string{fmt.Sprintln(uid), "own\n", "no\nmade\n5\n0\n", "denied: protected:.vscode /workspace/.vscode\n", "sockets 8\n"} {
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("got %v, %q; want %q", err, out, want)
				}
			}
		})
	}
}
