package native

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestHardLinksOfStores: a guest that writes to a file of the workspace does not
// change it under a name outside. Each script does so where nothing stops it.
func TestHardLinksOfStores(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "landlock", "python3")
	for name, text := range map[string]string{
		"appended":       "echo evil >>x",
		"overwritten":    "echo evil >x",
		"truncated":      `python3 -c 'import os; os.truncate("x",1)'`,
		"updated":        `python3 -c 'f=open("x","r+b"); f.write(b"evil")'`,
		"another name":   "ln x y; echo evil >>y",
		"renamed":        "mkdir d; mv x d/y; echo evil >>d/y",
		"through a link": "ln -s x l; echo evil >>l",
		"held open":      "exec 3<x; echo evil >/dev/fd/3",
		"held, no name":  "exec 3<x; rm x; ( echo evil >/proc/self/fd/3 ) || { ln -L /proc/self/fd/3 y; echo evil >>y; }",
		"held, removed, linked": `python3 -c '
import os
f=os.open("x",os.O_RDONLY); os.unlink("x")
try: os.link("/proc/self/fd/%d"%f,"y",follow_symlinks=True)
except OSError: os.close(os.open("/proc/self/fd/%d"%f,os.O_WRONLY|os.O_TRUNC)); raise
os.link("y","z"); os.link("z","w"); os.unlink("y")
open("z","a").write("evil")'`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, how := range []string{"control", "mounts", "landlock"} {
				y := newLinkHome(t)
				y.landlock = how == "landlock"
				store := filepath.Join(y.home, "notes/stored")
				if err := os.WriteFile(store, []byte(canaryText), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Link(store, filepath.Join(y.ws, "x")); err != nil {
					t.Fatal(err)
				}
				var out string
				if how == "control" {
					bare(t, y.ws, y.ws, text)
				} else {
					out, _, _ = y.run(t, text)
				}
				if got, err := os.ReadFile(store); err != nil || (string(got) != canaryText) != (how == "control") {
					t.Errorf("%s: %q, %v: %s", how, got, err, out)
				}
			}
		})
	}
}

// TestHardLinksGoOnWorking: a guest edits what has other names, and its own hard links
// stay.
func TestHardLinksGoOnWorking(t *testing.T) {
	testenv.Need(t, "userns", "notify", "landlock", "git")
	const text = `set -e
touch -d 2020-02-03 x; echo more >>x
test "$(cat x)" = "$(printf 'stored\nmore')"; test "$(stat -c %a:%h x)" = 750:1
sed -i s/more/less/ x; grep -q less x
test "$(stat -c %h ro)" = 2; : <ro
touch t; test "$(cat t)" = stored
echo a >n; ln n n2; echo b >>n2; test "$(cat n)" = "$(printf 'a\nb')"; ln n2 n3; echo c >n; test "$(cat n3)" = c
mkdir deps; echo lib >deps/lib; ln deps/lib lib; mv lib lib2; echo lib2 >lib2; test "$(cat deps/lib)" = lib2
test -z "$(ls -A | grep bawn)"
cd "${TMPDIR:-/tmp}"; top=$PWD; git init -q r; cd r; echo x >x; git add x; git -c user.name=a -c user.email=a@b commit -qm x
git clone -q $top/r $top/c; test -n "$(find $top/c/.git/objects -type f -links 2)"; cd $top/c; echo y >>x; git -c user.name=a -c user.email=a@b commit -qam y; git gc -q; git fsck --no-progress
`
	for _, landlock := range []bool{false, true} {
		y := newLinkHome(t)
		y.landlock = landlock
		for _, name := range []string{"x", "ro", "t"} {
			store := filepath.Join(y.home, "notes", name)
			if err := os.WriteFile(store, []byte("stored\n"), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(store, 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.Link(store, filepath.Join(y.ws, name)); err != nil {
				t.Fatal(err)
			}
		}
		out, code, denials := y.run(t, text)
		if code != 0 || len(denials) > 0 {
			t.Errorf("landlock %v: %s(%d) %q", landlock, out, code, denials)
		}
	}
}
