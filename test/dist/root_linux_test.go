package dist

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A root is a clean Debian in a directory.
type root struct {
	t   *testing.T
	dir string
	ada []string // becomes ada and runs the line of shell behind it
}

// setpriv becomes ada without capabilities.
var setpriv = []string{
	"setpriv", "--reuid=ada", "--regid=ada", "--init-groups", "--inh-caps=-all", "--no-new-privs",
	"env", "-i", "HOME=/home/ada", "USER=ada", "LANG=C.UTF-8", "TERM=dumb", "PATH=/usr/local/bin:/usr/bin:/bin", "sh", "-c",
}

// newRoot makes a root of this machine's own packages: those that are essential or
// required, and what these depend on. Nothing else that is installed here is in it.
func newRoot(t *testing.T) *root {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "bawn-root-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &root{t, dir, setpriv}
	database := readStatus(t)
	names := database.closure()
	r.copyFiles(names)
	r.writeDatabase(database, names)
	for _, d := range []string{"proc", "sys", "dev", "tmp", "run", "home", "root", "old", "opt", "var/log"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"passwd", "group"} {
		r.host("cp", filepath.Join(dir, "usr/share/base-passwd", f+".master"), filepath.Join(dir, "etc", f))
	}
	r.root("ldconfig")
	r.root("useradd", "--create-home", "--shell", "/bin/sh", "ada")
	return r
}

// host runs a command outside.
func (r *root) host(words ...string) string {
	r.t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return string(out)
}

// enter makes a directory the root of mount and process namespaces of their own, in
// which namespaces of users can be made (in a chroot they can't).
const enter = `set -e
mount --make-rprivate / && mount --bind "$1" "$1" && cd "$1" && shift
mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev && mount -t tmpfs tmpfs tmp && mount -t tmpfs -o mode=755 tmpfs run
chmod 1777 tmp
ip link set lo up 2>/dev/null || :
pivot_root . old && cd / && umount -l /old
exec "$@"`

func (r *root) command(words ...string) *exec.Cmd {
	all := append([]string{"--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts", "--net", "sh", "-c", enter, "sh", r.dir}, words...)
	cmd := exec.Command("unshare", all...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "HOME=/root"}
	return cmd
}

// root runs a command inside, as root.
func (r *root) root(words ...string) string {
	r.t.Helper()
	out, err := r.command(words...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%q inside: %v\n%s", words, err, out)
	}
	return string(out)
}

// user runs a line of shell inside, as the ordinary user ada in a directory of hers, and
// returns what it has printed and how it ended.
func (r *root) user(line string) (string, error) {
	out, err := r.command(append(slices.Clone(r.ada), "mkdir -p ~/project && cd ~/project && "+line)...).CombinedOutput()
	return string(out), err
}

// files lists what is in the root, without what dpkg writes down about itself, the
// logs, and ada's own.
func (r *root) files() []string {
	r.t.Helper()
	var out []string
	err := filepath.WalkDir(r.dir, func(path string, _ os.DirEntry, err error) error {
		name := strings.TrimPrefix(path, r.dir)
		if name == "/var/lib/dpkg" || name == "/home/ada" || name == "/var/log" {
			return filepath.SkipDir
		}
		out = append(out, name)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// A status is dpkg's list of what is installed.
type status struct {
	stanzas map[string]string // by package
	needs   map[string][]string
	first   []string // essential or required
}

var (
	packageName = regexp.MustCompile(`(?m)^Package: (.*)$`)
	depends     = regexp.MustCompile(`(?m)^(?:Pre-)?Depends: (.*)$`)
	provides    = regexp.MustCompile(`(?m)^Provides: (.*)$`)
	wanted      = regexp.MustCompile(`(?m)^(Essential: yes|Priority: required)$`)
	installed   = regexp.MustCompile(`(?m)^Status: install ok installed$`)
)

func readStatus(t *testing.T) status {
	t.Helper()
	text, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil {
		t.Fatal(err)
	}
	s := status{map[string]string{}, map[string][]string{}, nil}
	for _, stanza := range strings.Split(string(text), "\n\n") {
		if !installed.MatchString(stanza) {
			continue
		}
		name := packageName.FindStringSubmatch(stanza)[1]
		s.stanzas[name] = stanza
		if wanted.MatchString(stanza) {
			s.first = append(s.first, name)
		}
		for _, m := range depends.FindAllStringSubmatch(stanza, -1) {
			s.needs[name] = append(s.needs[name], strings.Split(m[1], ",")...)
		}
	}
	for name, stanza := range s.stanzas { // what is provided stands for its provider
		if m := provides.FindStringSubmatch(stanza); m != nil {
			for _, p := range strings.Split(m[1], ",") {
				if p = strings.Fields(p)[0]; s.stanzas[p] == "" {
					s.needs[p] = []string{name}
				}
			}
		}
	}
	return s
}

// closure returns the essential and required packages with all that they depend on; of
// alternatives the first that is here.
func (s status) closure() []string {
	seen, rest := map[string]bool{}, slices.Clone(s.first)
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, need := range s.needs[name] {
			for _, one := range strings.Split(need, "|") {
				words := strings.FieldsFunc(one, func(r rune) bool { return r == ' ' || r == '(' || r == ':' })
				if len(words) > 0 && (s.stanzas[words[0]] != "" || s.needs[words[0]] != nil) {
					rest = append(rest, words[0])
					break
				}
			}
		}
	}
	var out []string
	for name := range seen {
		if s.stanzas[name] != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// copyFiles copies the packages' files, and the links that Debian's own installer makes.
func (r *root) copyFiles(names []string) {
	r.t.Helper()
	list := r.host(append([]string{"dpkg-query", "-L"}, names...)...)
	var paths bytes.Buffer
	for _, link := range []string{"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/usr/bin/awk", "/etc/alternatives/awk", "/etc/debian_version"} {
		if _, err := os.Lstat(link); err == nil {
			paths.WriteString("." + link + "\n")
		}
	}
	for lines := bufio.NewScanner(strings.NewReader(list)); lines.Scan(); {
		path := lines.Text()
		if _, err := os.Lstat(path); err != nil || path == "/." || slices.Contains([]string{"/bin", "/sbin", "/lib", "/lib64"}, path) {
			continue // a diversion's note, or what was left out of this machine
		}
		if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(real, filepath.Base(path)) // below /usr, where /bin is a link
		}
		paths.WriteString("." + path + "\n")
	}
	cmd := exec.Command("sh", "-c", `tar -C / --no-recursion -T - -cf - | tar -C "$1" -xpf -`, "sh", r.dir)
	cmd.Stdin = &paths
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("copy the packages' files: %v\n%s", err, out)
	}
}

// writeDatabase gives the root a dpkg that knows these packages and no others.
func (r *root) writeDatabase(s status, names []string) {
	r.t.Helper()
	db := filepath.Join(r.dir, "var/lib/dpkg")
	if err := os.MkdirAll(filepath.Join(db, "info"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range names {
		text.WriteString(s.stanzas[name] + "\n\n")
		for _, pattern := range []string{name + ".*", name + ":*"} {
			found, err := filepath.Glob(filepath.Join("/var/lib/dpkg/info", pattern))
			if err != nil {
				r.t.Fatal(err)
			}
			if len(found) > 0 {
				r.host(append([]string{"cp", "-p", "-t", filepath.Join(db, "info")}, found...)...)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(db, "status"), []byte(text.String()), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.host("sh", "-c", `cp -a /var/lib/dpkg/info/format "$1/info/" && mkdir -p "$1/triggers" "$1/updates" "$1/alternatives" && : >"$1/available"`, "sh", db)
}
