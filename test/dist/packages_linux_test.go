package dist

import (
	"archive/tar"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// rpm installs the RPM package in a clean root with the real rpm, uses it as an ordinary
// user, and removes it.
func rpm(t *testing.T, file string) {
	testenv.Need(t, "rpm")
	r := newRoot(t)
	before := r.files()
	with := func(words ...string) string {
		return r.host(append([]string{"rpm", "--root", r.dir, "--dbpath", "/var/lib/dpkg/rpm"}, words...)...)
	}
	with("-i", "--nodeps", file)
	use(t, r)
	if missing := missingFiles(r, "usr/share/doc/bawn/CHANGELOG.md", "usr/share/doc/bawn/LICENSE"); len(missing) > 0 {
		t.Errorf("the package lacks %q", missing)
	}
	for _, line := range strings.Split(with("-q", "--queryformat", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES}\n]", "bawn"), "\n") {
		checkMode(t, line)
	}
	with("-e", "bawn")
	for _, name := range r.files() {
		if _, ok := slices.BinarySearch(before, name); !ok && !slices.Contains(foreign, name) {
			t.Errorf("%s is left", name)
		}
	}
}

// foreign are directories that other packages of an RPM system own: systemd, zsh, fish.
var foreign = []string{
	"/usr/lib/systemd/user", "/usr/share/fish", "/usr/share/fish/vendor_completions.d", "/usr/share/zsh", "/usr/share/zsh/site-functions",
}

// checkMode wants a line "-rw-r--r-- root root /file" to be one of root's, which nobody
// else writes; programs alone can be executed.
func checkMode(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	if len(words) < 4 {
		return
	}
	want := "-rw-r--r--"
	switch {
	case words[0][0] == 'd':
		want = "drwxr-xr-x"
	case words[0][0] == 'l':
		want = words[0] // a link's mode means nothing
	case strings.Contains(words[3], "/libexec/bawn/"):
		want = "-rwxr-xr-x"
	}
	if words[0] != want || words[1] != "root" || words[2] != "root" {
		t.Errorf("%s; want %s of root", line, want)
	}
}

// apk reads the Alpine package, which is one tar of three gzip members (signature, control,
// files): what it says of itself, and its files.
func apk(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Name == ".PKGINFO" {
			text, err := io.ReadAll(r)
			for _, want := range []string{"pkgname = bawn\n", "license = Apache-2.0\n", "datahash = "} {
				if err != nil || !strings.Contains(string(text), want) {
					t.Errorf(".PKGINFO lacks %q: %v\n%s", want, err, text)
				}
			}
		}
		if !strings.HasPrefix(h.Name, ".") {
			checkMode(t, fmt.Sprintf("%v %s %s /%s", modeText(h), owner(h.Uname, h.Uid), owner(h.Gname, h.Gid), h.Name))
		}
	}
	for _, want := range []string{"usr/bin/bawn", "usr/libexec/bawn/bawn", "usr/libexec/bawn/bawnd", "usr/libexec/bawn/bawn-egress", "usr/share/man/man1/bawn.1.gz", "usr/share/doc/bawn/LICENSE"} {
		if !slices.Contains(names, want) {
			t.Errorf("the package lacks %q", want)
		}
	}
	busyboxRoot(t, file)
}

// busyboxRoot unpacks the Alpine package in a root whose only programs are those of
// busybox, without a C library of either kind, and uses it as an ordinary user. It shows
// what apk would leave; apk itself is not to be had offline.
func busyboxRoot(t *testing.T, file string) {
	testenv.Need(t, "docker") // and so busybox
	r := &root{t, t.TempDir(), []string{"su", "ada", "-s", "/bin/sh", "-c"}}
	r.host("sh", "-c", `set -e
chmod 755 "$1" && cd "$1" && mkdir -p bin etc proc sys dev tmp run root home/ada old && busybox=$(command -v busybox) && cp "$busybox" bin/busybox
for name in $("$busybox" --list); do [ -e "bin/$name" ] || ln -s busybox "bin/$name"; done
printf 'root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000:ada:/home/ada:/bin/sh\n' >etc/passwd && printf 'root:x:0:\nada:x:1000:\n' >etc/group
printf 'root:*:1::::::\nada:*:1::::::\n' >etc/shadow && chown 1000:1000 home/ada
tar -xzf "$2" --warning=no-unknown-keyword --exclude='.*'`, "sh", r.dir, file)
	use(t, r)
	if missing := missingFiles(r, "usr/share/doc/bawn/LICENSE"); len(missing) > 0 {
		t.Errorf("the package lacks %q", missing)
	}
}

// modeText is a mode as ls(1) writes it.
func modeText(h *tar.Header) string {
	text := h.FileInfo().Mode().String()
	return strings.Replace(text, "L", "l", 1)
}

func owner(name string, id int) string {
	if name == "" && id == 0 {
		return "root"
	}
	return name
}

// others builds for the machines that the tests don't run on: each program is of that
// machine and static, and those for Linux start under qemu.
func others(t *testing.T, tree string) {
	testenv.Whole(t)
	out := build(t, tree, "TARGETS=linux/arm64 darwin/arm64", "FORMATS=deb")
	dir := t.TempDir()
	for _, target := range []string{"linux-arm64", "darwin-arm64"} {
		archive := one(t, out, "*-"+target+".tar.gz")
		if text, err := exec.Command("tar", "-C", dir, "-xzf", archive).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		programs := filepath.Join(dir, strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), "libexec/bawn")
		for _, name := range []string{"bawn", "bawnd", "bawn-egress"} {
			if err := isFor(target, filepath.Join(programs, name)); err != nil {
				t.Errorf("%s: %v", target, err)
			}
		}
		if target == "linux-arm64" {
			t.Run("qemu", func(t *testing.T) { emulated(t, programs) })
		}
	}
}

// isFor reads a program's header.
func isFor(target, file string) error {
	if target == "darwin-arm64" {
		m, err := macho.Open(file)
		if err != nil {
			return err
		}
		defer m.Close()
		if m.Cpu != macho.CpuArm64 || m.Type != macho.TypeExec {
			return fmt.Errorf("%s is a %v for %v", file, m.Type, m.Cpu)
		}
		return nil
	}
	e, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer e.Close()
	libraries, err := e.ImportedLibraries()
	if e.Machine != elf.EM_AARCH64 || len(libraries) > 0 || err != nil {
		return fmt.Errorf("%s is for %v with libraries %q, %v", file, e.Machine, libraries, err)
	}
	return nil
}

// emulated starts programs of another machine. The sandbox needs a kernel of that machine.
func emulated(t *testing.T, programs string) {
	testenv.Need(t, "qemu-user")
	home := t.TempDir()
	for _, step := range []struct{ line, want string }{
		{"bawn version", "bawn version "},
		{"bawn policy decide git\\ status", "allow: "},
		{"bawn audit verify", "is empty"},
		{"bawnd secret --store file list", "no secrets yet"}, // bawn would start it without qemu
	} {
		cmd := exec.Command("sh", "-c", `exec qemu-aarch64-static "$0"/`+step.line, programs)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), step.want) {
			t.Errorf("%s: %v: %q; want %q", step.line, err, out, step.want)
		}
	}
}
