package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// environment: only what the profile names gets in, and what is there is
// true inside.
func environment(t *testing.T, d caller) {
	secrets := []string{"AWS_SECRET_ACCESS_KEY=leaked", "GITHUB_TOKEN=leaked", "SSH_AUTH_SOCK=/leaked", "MY_OWN=leaked", "LD_PRELOAD=", "BASH_ENV=/leaked", "DBUS_SESSION_BUS_ADDRESS=leaked"}
	d.env = append(d.env, append(secrets, "EDITOR=ed", "MY_OTHER=mine", "LC_WORK=work")...)
	out, errs, code := d.run("--env", "MY_OTHER", "--env", "MY_SET=a=b c", "--", "env")
	if code != 0 {
		t.Fatalf("%d: %s", code, errs)
	}
	if strings.Contains(out, "leaked") {
		t.Errorf("a variable that nobody named got in:\n%s", out)
	}
	for _, want := range []string{"EDITOR=ed\n", "MY_OTHER=mine\n", "MY_SET=a=b c\n", "LC_WORK=work\n", "HOME=" + os.Getenv("HOME") + "\n", "PATH=" + os.Getenv("PATH") + "\n", "TERM=xterm\n", "PWD=" + d.dir + "\n", "BAWN_SESSION="} {
		if !strings.Contains("\n"+out, "\n"+want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	script := `for n in HOME TMPDIR XDG_RUNTIME_DIR PWD; do eval d=\$$n; test -d "$d" || echo "$n is no directory: $d"; done; f=$(mktemp) && rm "$f"`
	if out, errs, code := d.run("--", "sh", "-c", script); out+errs != "" || code != 0 {
		t.Errorf("%d: %s%s", code, out, errs)
	}
}

// callersUmask: the umask bawn was started with is the guest's.
func callersUmask(t *testing.T, d caller) {
	for _, mask := range []string{"0000", "0027", "0077"} {
		words := slices.Concat([]string{"sh", "-c", "umask " + mask + `; exec "$@"`, "sh"}, d.words, []string{"--"})
		script := "umask; touch f" + mask + "; mkdir d" + mask + "; mkfifo p" + mask + "; stat -c %a ?" + mask
		want, _, _ := Wrapped("sh", "-c", "umask "+mask+`; exec "$@"`, "sh")(t.TempDir(), nil, "sh", "-c", script)
		if out, errs, code := Wrapped(words...)(d.dir, nil, "sh", "-c", script); out != want || errs != "" || code != 0 {
			t.Errorf("umask %s: got %q, %q, %d; want %q", mask, out, errs, code, want)
		}
	}
}

// callersDescriptors: nothing that bawn was given beyond the three gets in.
func callersDescriptors(t *testing.T, d caller) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("leaked"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `for fd in $(ls /proc/$$/fd); do echo "$fd $(readlink /proc/$$/fd/$fd)"; done; cat <&7`
	words := slices.Concat([]string{"sh", "-c", `exec 5<"$0" 7<"$0" 9>>"$0"; exec "$@"`, secret}, d.words, []string{"--"})
	out, _, _ := Wrapped(words...)(d.dir, nil, "bash", "-c", script)
	if strings.Contains(out, "leaked") || strings.Contains(out, secret) {
		t.Errorf("a descriptor of the caller's got in: %s", out)
	}
	control, _, _ := Wrapped(words[:4]...)(d.dir, nil, "bash", "-c", script)
	if !strings.Contains(control, "leaked") {
		t.Errorf("control: the descriptor is not there bare either: %s", control)
	}
}

// closedStreams: bawn itself started with standard streams closed.
func closedStreams(t *testing.T, d caller) {
	for _, closing := range []string{"<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"} {
		name := filepath.Join(d.dir, "out")
		words := slices.Concat([]string{"sh", "-c", `exec ` + closing + `; "$@"`, "sh"}, d.words, []string{"--"})
		_, errs, code := Wrapped(words...)(d.dir, nil, "sh", "-c", `echo written >out; exit 6`)
		got, err := os.ReadFile(name)
		if err != nil || string(got) != "written\n" || code != 6 {
			t.Errorf("%s: file %q, %v; code %d, standard error %q", closing, got, err, code, errs)
		}
		_ = os.Remove(name)
	}
}

// subdirectory: the repository around is the workspace, and the guest starts
// where it was called.
func subdirectory(t *testing.T, d caller) {
	sub := filepath.Join(d.dir, "a", "b")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", d.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	root := d.dir
	d.dir = sub
	out, errs, code := d.run("--", "sh", "-c", "pwd; echo x >../up; git -C ../.. status --short; cd ../..; pwd")
	if want := fmt.Sprintf("%s\n?? a/\n%s\n", sub, root); out != want || errs != "" || code != 0 {
		t.Errorf("got %q, %q, %d; want %q", out, errs, code, want)
	}
	d.dir = root
	if out, errs, code := d.run("--cwd", "a/b", "--", "pwd"); out != sub+"\n" || code != 0 {
		t.Errorf("--cwd: got %q, %q, %d; want %q", out, errs, code, sub)
	}
	if out, errs, code := d.run("--cwd", "a/none", "--", "pwd"); out != "" || code != 2 {
		t.Errorf("--cwd to nowhere: got %q, %q, %d", out, errs, code)
	}
}

// callersFile: output that the caller redirected to a file outside the
// workspace is written, appended and read as unsandboxed. Truncated it is not: TestScripts has
// run-redirected.
func callersFile(t *testing.T, d caller) {
	dir := t.TempDir()
	for _, name := range []string{"bare", "bawn"} {
		words := slices.Concat(d.words, []string{"--"})
		if name == "bare" {
			words = nil
		}
		redirect := slices.Concat([]string{"sh", "-c", `exec >>"$0/$1" 2>&1 <"$0/in"; shift; "$@"; "$@"`, dir, name}, words)
		if err := os.WriteFile(filepath.Join(dir, "in"), []byte("one\ntwo\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, errs, code := Wrapped(redirect...)(d.dir, nil, "sh", "-c", `read x; echo "out $x"; echo err >&2; echo more >>/dev/stdout; echo fd >>/proc/self/fd/1; exit 4`)
		if errs != "" || code != 4 {
			t.Errorf("%s: %q, %d", name, errs, code)
		}
	}
	want, got := must(os.ReadFile(filepath.Join(dir, "bare"))), must(os.ReadFile(filepath.Join(dir, "bawn")))
	if string(got) != string(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// ownCaches: by default a guest compiles into a cache of its own, which is
// kept, and the caller's stays as it is.
func ownCaches(t *testing.T, d caller) {
	testenv.Need(t, "go")
	if out, err := exec.Command("sh", "-c", `cd "$0" && printf 'module m\n' >go.mod && printf 'package m\n\nvar Marker = "'$$'"\n' >m.go`, d.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	list := `f=$(go list -export -f '{{.Export}}' .) && test -s "$f" && echo "$f"`
	out, errs, code := d.run("--", "sh", "-c", list)
	if code != 0 {
		t.Fatalf("%d: %s", code, errs)
	}
	if _, err := os.Stat(strings.TrimSpace(out)); err == nil {
		t.Errorf("%s was written by the guest into the caller's cache", out)
	}
	again, errs, code := d.run("--", "sh", "-c", `test -s "$0" && echo kept`, strings.TrimSpace(out))
	if again != "kept\n" {
		t.Errorf("the cache was not kept: %q, %q, %d", again, errs, code)
	}
}

// repositoryConfiguration: what the guest configures works inside and does not come
// out, while its branches do; what it deletes of the human's stays.
func repositoryConfiguration(t *testing.T, d caller) {
	testenv.Need(t, "git")
	if out, err := exec.Command("sh", "-c", `cd "$0" && git init -q -b main && git -c user.name=a -c user.email=b commit -q --allow-empty -m one && git branch gone`, d.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before := must(os.ReadFile(filepath.Join(d.dir, ".git/config")))
	branches := `git branch --format='%(refname:short)' | sort | xargs`
	out, errs, code := d.run("--", "sh", "-c", `git branch -q -d gone; git branch new; git checkout -q -b other; git config core.hooksPath /x; git config core.hooksPath; `+branches)
	if out != "/x\nmain new other\n" || code != 0 {
		t.Errorf("git did not do its work: %q, %d", out, code)
	}
	if errs != gitNote+"\"refs/heads/gone\" was deleted by the guest and is still there\n" {
		t.Errorf("standard error: %q", errs)
	}
	if after := must(os.ReadFile(filepath.Join(d.dir, ".git/config"))); string(after) != string(before) {
		t.Errorf("the configuration was changed to %q", after)
	}
	if out, _, _ := Unsandboxed(d.dir, nil, "sh", "-c", branches+"; git symbolic-ref --short HEAD; git config --local core.hooksPath"); out != "gone main new other\nother\n" {
		t.Errorf("outside: %q", out)
	}
}
