package dist

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// build runs scripts/dist for this machine's architecture, and returns where it wrote.
func build(t *testing.T, tree string, environ ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	cmd := exec.Command("scripts/dist")
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "TARGETS=linux/"+runtime.GOARCH, "OUT="+out)
	cmd.Env = append(cmd.Env, environ...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("scripts/dist: %v\n%s", err, text)
	}
	return out
}

// one returns the one file of a directory that has this pattern.
func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q has %q for %q, %v; want one file", dir, found, pattern, err)
	}
	return found[0]
}

// TestRelease builds a release, checks what is in it, and installs its Debian package.
func TestRelease(t *testing.T) {
	testenv.Need(t, "root", "go", "make", "git", "dpkg", "ssh", "userns", "landlock", "seccomp", "notify")
	testenv.ByRoot(t)
	tree, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	make := exec.Command("make", "-s", "bin/nfpm")
	make.Dir = tree
	if text, err := make.CombinedOutput(); err != nil {
		t.Fatalf("make bin/nfpm: %v\n%s", err, text)
	}
	var how []string
	if testenv.Short() { // the programs are those of all tests, and packed once
		bin := filepath.Join(t.TempDir(), "bin")
		if err := testhome.Programs(bin, "cmd/bawn", "cmd/bawnd", "cmd/bawn-egress"); err != nil {
			t.Fatal(err)
		}
		how = []string{"PROGRAMS=" + bin, "FORMATS=deb"}
	}
	out := build(t, tree, how...)
	t.Run("files", func(t *testing.T) { files(t, out) })
	t.Run("signature", func(t *testing.T) { signature(t, out) })
	t.Run("deb", func(t *testing.T) { deb(t, one(t, out, "*.deb")) })
	t.Run("completions", func(t *testing.T) { completions(t, one(t, out, "*.tar.gz")) })
	t.Run("cast", func(t *testing.T) { cast(t, one(t, out, "*.deb")) })
	t.Run("rpm", func(t *testing.T) { testenv.Whole(t); rpm(t, one(t, out, "*.rpm")) })
	t.Run("apk", func(t *testing.T) { testenv.Whole(t); apk(t, one(t, out, "*.apk")) })
	t.Run("devcontainer", func(t *testing.T) { devcontainer(t, one(t, out, "*.deb")) })
	t.Run("others", func(t *testing.T) { others(t, tree) })
	t.Run("lintian", func(t *testing.T) { lintian(t, one(t, out, "*.deb")) })
	t.Run("twice", func(t *testing.T) { twice(t, tree, out) })
}

// files looks for each kind of file, and checks the checksums.
func files(t *testing.T, out string) {
	if !testenv.Short() {
		one(t, out, "*.rpm")
		one(t, out, "*.apk")
	}
	for _, pattern := range []string{"*.deb", "*.tar.gz", "*.spdx.json", "*.provenance.json", "bawn.rb", "bawn.nix"} {
		one(t, out, pattern)
	}
	sums := exec.Command("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	sums.Dir = out
	if text, err := sums.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

// signature signs the checksums with a key of the test's and verifies them as
// docs/dev/release.md says; changed checksums must not pass.
func signature(t *testing.T, out string) {
	dir := t.TempDir()
	line := `set -e
ssh-keygen -q -t ed25519 -N '' -C release -f "$1/key"
printf 'bawn-release namespaces="bawn-release" %s\n' "$(cut -d' ' -f1,2 "$1/key.pub")" >"$1/allowed"
ssh-keygen -q -Y sign -n bawn-release -f "$1/key" <"$2/SHA256SUMS" >"$1/SHA256SUMS.sig"
verify() { ssh-keygen -Y verify -f "$1/allowed" -I bawn-release -n bawn-release -s "$1/SHA256SUMS.sig"; }
verify "$1" <"$2/SHA256SUMS"
if sed 's/^./x/' "$2/SHA256SUMS" | verify "$1"; then echo "changed checksums pass"; exit 1; fi`
	if text, err := exec.Command("sh", "-c", line, "sh", dir, out).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

// deb installs an older version in a clean Debian, upgrades it, uses it as an ordinary
// user, and purges it.
func deb(t *testing.T, file string) {
	r := newRoot(t)
	before := r.files()
	r.host("sh", "-c", `set -e
mkdir "$1/tmp/x" && dpkg-deb -R "$2" "$1/tmp/x" && sed -i 's/^Version: .*/Version: 0.0.9-1/' "$1/tmp/x/DEBIAN/control"
dpkg-deb --root-owner-group -Znone -b "$1/tmp/x" "$1/var/old.deb" && rm -r "$1/tmp/x" && cp "$2" "$1/var/new.deb"`, "sh", r.dir, file)
	r.root("dpkg", "-i", "/var/old.deb")
	r.root("dpkg", "-i", "/var/new.deb")
	if v := r.root("dpkg-query", "-W", "-f", "${Version} ${Status}", "bawn"); !strings.HasSuffix(v, "-1 install ok installed") || strings.HasPrefix(v, "0.0.9") {
		t.Errorf("installed is %q", v)
	}
	use(t, r)
	if missing := missingFiles(r, "usr/share/doc/bawn/copyright", "usr/share/doc/bawn/changelog.Debian.gz"); len(missing) > 0 {
		t.Errorf("the package lacks %q", missing)
	}
	t.Run("managed", func(t *testing.T) { managed(t, r) })
	t.Run("ci", func(t *testing.T) { ci(t, r) })
	r.root("dpkg", "--purge", "bawn")
	r.root("rm", "/var/old.deb", "/var/new.deb")
	after := r.files()
	for _, name := range after {
		if _, ok := slices.BinarySearch(before, name); !ok {
			t.Errorf("%s is left", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files before, %d after", len(before), len(after))
	}
}

// use does what a newcomer does, each with what must be seen.
func use(t *testing.T, r *root) {
	t.Helper()
	for _, step := range []struct{ line, want string }{
		{"command -v bawn", "/usr/bin/bawn\n"},
		{"bawn version", "bawn version "},
		{"bawn doctor", "provider native"},
		{"bawn run -- sh -c 'echo kept >made; echo inside; cat /home/ada/.ssh/id; touch /etc/x'", "inside\n"},
		{"cat made; test ! -e /etc/x", "kept\n"},
		{"bawn diff", "made"},
		{"bawn undo --yes && test ! -e made && echo undone", "undone\n"},
		{"bawn audit verify", ""},
		{"bawn secret list", ""},
	} {
		out, err := r.user(step.line)
		if !strings.Contains(out, step.want) || (err != nil && !strings.Contains(step.line, "touch /etc/x")) {
			t.Errorf("%s: %v, %q; want %q", step.line, err, out, step.want)
		}
	}
}

// missingFiles lists what the package should have brought and has not.
func missingFiles(r *root, further ...string) []string {
	var out []string
	for _, name := range append(further,
		"usr/share/man/man1/bawn.1.gz", "usr/share/man/man1/bawn-run.1.gz", "usr/share/bash-completion/completions/bawn",
		"usr/share/zsh/site-functions/_bawn", "usr/share/fish/vendor_completions.d/bawn.fish", "usr/lib/systemd/user/bawn.service",
		"usr/lib/systemd/user/bawn.socket", "usr/share/bawn/apparmor", "usr/share/doc/bawn/third-party-licences.gz",
	) {
		if _, err := os.Stat(filepath.Join(r.dir, name)); err != nil {
			out = append(out, name)
		}
	}
	return out
}

// completions unpacks the archive and has bash, zsh and fish complete "bawn ru". What
// bash has from its package bash-completion is one function, which is written here.
func completions(t *testing.T, archive string) {
	testenv.Need(t, "bash", "zsh", "fish")
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-C", dir, "--strip-components=1", "-xzf", archive).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for shell, line := range map[string]string{
		"bash": `_get_comp_words_by_ref() { cur=ru prev=bawn words=(bawn ru) cword=1; }; source "$1/share/bash-completion/completions/bawn"; COMP_LINE="bawn ru" COMP_POINT=7 COMP_WORDS=(bawn ru) COMP_CWORD=1; __start_bawn; echo "${COMPREPLY[@]}"`,
		"zsh":  `fpath=("$1/share/zsh/site-functions" $fpath); autoload -Uz compinit; compinit -u -D; [ "$_comps[bawn]" = _bawn ] && autoload +X -Uz _bawn && bawn __complete ru`,
		"fish": `source $argv[1]/share/fish/vendor_completions.d/bawn.fish; complete -C "bawn ru"`,
	} {
		words := []string{"-c", line, shell, dir}
		if shell == "fish" {
			words = []string{"-c", line, dir}
		}
		cmd := exec.Command(shell, words...)
		cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=dumb"}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "run") {
			t.Errorf("%s: %v: %q", shell, err, out)
		}
	}
}

// lintian has Debian's checker look at the package; what it may say of it is explained
// in packaging/lintian-overrides.
func lintian(t *testing.T, file string) {
	testenv.Need(t, "lintian")
	out, err := exec.Command("lintian", "--allow-root", "--fail-on", "error,warning", "--display-info", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "I: ") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// targets are those of a release.
const targets = "linux/amd64 linux/arm64 darwin/arm64"

// twice makes the release again: in another directory, by another user, with another
// umask and other times of files. Its objects are the first release's, over whose cache
// the second has a layer of its own: what compiling gives is compared for one program of
// each target, with an empty cache. Compiling all of them twice takes a quarter of an hour
// on a busy machine, most of it in SQLite and the standard library.
func twice(t *testing.T, tree, first string) {
	testenv.Whole(t)
	dir, err := os.MkdirTemp("/var/tmp", "bawn twice-") // with a blank
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = testenv.RemoveAll(dir) })
	line := `set -e
epoch=$(git log -1 --format=%ct) modules=$(go env GOMODCACHE) goroot=$(go env GOROOT) objects=$(go env GOCACHE)
mkdir -p "$1/else where" "$1/cache" "$1/tmp" "$1/go" "$1/modules" "$1/layered" "$1/upper" "$1/work"
for target in $3; do VERSION=0.0.9 scripts/dist-programs "$target" "$1/first/$target/" ./cmd/bawn-egress; done
git clone -q --no-hardlinks . "$1/else where/bawn" 2>/dev/null
git ls-files -z --others --modified --exclude-standard | tar --null --ignore-failed-read -T - -cf - | tar -C "$1/else where/bawn" -xf -
mkdir "$1/else where/bawn/bin" && cp bin/nfpm "$1/else where/bawn/bin/"
find "$1/else where" -exec touch -h -d 2001-02-03 {} +
chown -R 65534:65534 "$1" && chmod 755 "$1"
unshare --mount sh -c '
	mount --bind "$2" "$1/go" && mount --bind "$3" "$1/modules" && mount -t overlay -o "lowerdir=$6,upperdir=$1/upper,workdir=$1/work" overlay "$1/layered" &&
	find "$1/layered" -maxdepth 1 -exec chmod a+rwX {} + && cd "$1/else where/bawn" && umask 077 || exit
	other() {
		cache=$1 && shift && setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH="$dir/go/bin:/usr/bin:/bin" HOME="$dir/tmp" TMPDIR="$dir/tmp" GOCACHE="$dir/$cache" \
			GOMODCACHE="$dir/modules" TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 "$@"
	}
	dir=$1 && for target in $7; do other cache VERSION=0.0.9 scripts/dist-programs "$target" "$1/second/$target/" ./cmd/bawn-egress || exit; done
	other layered SOURCE_DATE_EPOCH="$4" TARGETS="$5" OUT="$1/out" scripts/dist' sh "$1" "$goroot" "$modules" "$epoch" "$2" "$objects" "$3"`
	cmd := exec.Command("sh", "-c", line, "sh", dir, "linux/"+runtime.GOARCH, targets)
	cmd.Dir = tree
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, name := range []string{"out/SHA256SUMS", "first/linux/arm64/bawn-egress", "second/darwin/arm64/bawn-egress"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for a, b := range map[string]string{first: filepath.Join(dir, "out"), filepath.Join(dir, "first"): filepath.Join(dir, "second")} {
		if text, err := exec.Command("diff", "-r", a, b).CombinedOutput(); err != nil {
			t.Errorf("%s and %s differ: %v\n%s", a, b, err, text)
		}
	}
}
