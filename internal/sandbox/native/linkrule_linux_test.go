package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A linkHome is a home with a workspace, a tool chain, a store and files that a guest's
// link must not lead the human's programs to.
type linkHome struct {
	home, ws string
	landlock bool // sessions have no mounts
}

const canaryText = "the human's own\n"

// newLinkHome makes one. Its home is not the user's own.
func newLinkHome(t *testing.T) linkHome {
	t.Helper()
	home := workspace(t)
	y := linkHome{home: home, ws: filepath.Join(home, "src/p")}
	for _, dir := range []string{"src/p/a/b/c", "src/p/own", "src/other", ".pyenv/versions/3/bin", ".cache/bazel/out", ".config/tool", "notes"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{".bashrc": 0o644, ".pyenv/versions/3/bin/python": 0o755, ".pyenv/versions/3/settings": 0o644, "notes/run": 0o755, "src/p/file": 0o644} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(canaryText), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"src/p/own/config": "../../../.config", "src/alias": "..", "src/p/own/deep": "a"} { // the human's
		if err := os.Symlink(to, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	return y
}

// run runs a script in a session on the workspace, or, as its control, where no
// session is.
func (y linkHome) run(t *testing.T, text string) (string, int, []string) {
	t.Helper()
	req := request(y.ws)
	req.Session.ID = filepath.Base(y.home)
	req.Home, req.Environ = y.home, append(os.Environ(), "HOME="+y.home, "W="+y.ws)
	req.Session.Isolation.Env = append(req.Session.Isolation.Env, "W")
	req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: filepath.Join(y.home, "notes"), Access: bawn.ReadOnly, Why: "--ro"})
	var p sandbox.Provider = New("")
	if y.landlock {
		p = NewLandlock("")
	}
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	out, code, denials := execute(t, p, plan, text)
	var rules []string
	for _, d := range denials {
		rules = append(rules, d.Rule+" "+d.Resource+": "+d.Reason)
	}
	return out, code, rules
}

// leadsOut reports whether the human's programs that follow a link in the workspace,
// or a path below one, are led to a place of the home that is not the session's.
func (y linkHome) leadsOut(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir(y.ws, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink == 0 || p == filepath.Join(y.ws, "own/config") {
			return err
		}
		if _, end := layout.Follow(p); !layout.Below(end, y.ws) && end != y.ws {
			out = append(out, p+" → "+end)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLinksLeadNowhere: whatever a guest does, no link of the guest's leads the
// human's programs into the home. Each script does so where nothing stops it.
func TestLinksLeadNowhere(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "landlock")
	for name, text := range map[string]string{
		"absolute":                "ln -s $HOME/.bashrc x",
		"not there yet":           "ln -s $HOME/.config/tool/new x",
		"relative":                "ln -s ../../.bashrc x",
		"deep relative":           "ln -s ../../../../../.bashrc a/b/c/x",
		"the home":                "ln -s $HOME x",
		"above the home":          "ln -s / x",
		"through the host's link": "ln -s own/config/tool x",
		"through links":           "ln -s own/deep x; ln -s x/../../../.bashrc y; ln -s $W/own/config y",
		"another name":            "ln -s $HOME/src/alias/.bashrc x",
		"up again":                "mkdir d; ln -s d/../../../.bashrc x",
		"up out of what comes":    "ln -s d/../../../.bashrc x; mkdir d",
		"up again out of a link":  "ln -s ../a/b a/l; ln -s a/l/../../../../.bashrc x",
		"through a link, moved":   "mkdir -p 1/2/3; ln -s ../../../x 1/2/3/l; ln -s 1/2/3/l/y m; mv 1/2/3 1/3; mv 1/3 3; ln -s 3/l/y n",
		"another link's place":    "mkdir k; ln -s ../a k/l; ln -s k/l/.bashrc x; ln -sfn ../../.. k/l",
		"up, then another's":      "mkdir k; ln -s ../a k/l; ln -s k/l/b/.. x; ln -sfn ../own/config k/l",
		"as a directory":          "ln -s ../other x",
		"moved up":                "ln -s ../../../../../.bashrc a/b/c/x || { mkdir -p a/b/c/d/e; ln -s ../../../../../src a/b/c/d/e/x; mv a/b/c/d/e a/b/top; }",
		"moved up as a directory": "mkdir -p 1/2/3; ln -s ../../../x 1/2/3/l; mv 1/2/3 3",
		"moved by itself":         "mkdir -p 1/2/3; ln -s ../../../x 1/2/3/l; mv 1/2/3/l l",
		"another name for a link": "mkdir -p 1/2/3; ln -s ../../../x 1/2/3/l; ln -P 1/2/3/l l",
		"exchanged":               "mkdir -p 1/2/3 e; ln -s ../../../x 1/2/3/l; python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); sys.exit(l.renameat2(-100,b\"1/2/3\",-100,b\"e\",2)!=0)'",
		"a directory exchanged":   "mkdir d; ln -s d/.bashrc x; rmdir d; ln -s $HOME d",
		"the human's link moved":  "mkdir d; ln -s d/tool x; mv own/config d/../e; mv own/config a/config",
		"a setting of a tool":     "mkdir bin; ln -s $HOME/.pyenv/versions/3/settings bin/x",
		"a tool by another way":   "ln -s $HOME/.pyenv/versions/3/bin/python x",
		"a tool's directory":      "mkdir bin; ln -s $HOME/.pyenv/versions/3/bin bin/x",
		"a new tool":              "mkdir bin; ln -s $HOME/.pyenv/versions/3/bin/new bin/x",
		"working directory":       "ln -s /proc/self/cwd/../../.bashrc x",
		"root directory":          "ln -s /proc/self/root$HOME/.bashrc x",
		"another's root":          "ln -s /proc/1/root$HOME/.bashrc x",
		"a thread's":              "ln -s /proc/thread-self/../self/task/../root$HOME x",
		"a descriptor":            "ln -s /proc/self/fd/7 x",
		"a start that comes":      "ln -s L/x notes; ln -s /tmp L",
		"a process that comes":    "ln -s L/root$HOME/.bashrc x; ln -s /proc/self L",
		"a thread that comes":     "ln -s L/cwd x; ln -s /proc/thread-self/task/1 L || ln -s /proc/1/task/1 L",
		"descriptors that come":   "ln -s L/7 x; ln -s /dev/fd L",
		"by descriptor":           "exec 3<$HOME; ln -s /proc/self/fd/3/.bashrc x",
	} {
		t.Run(name, func(t *testing.T) {
			control := newLinkHome(t)
			c := exec.Command("bash", "-c", text)
			c.Dir, c.Env = control.ws, append(os.Environ(), "HOME="+control.home, "W="+control.ws)
			if out, _ := c.CombinedOutput(); len(control.leadsOut(t)) == 0 {
				t.Errorf("the control does not lead out: %s\n%s", text, out)
			}
			for _, landlock := range []bool{false, true} {
				y := newLinkHome(t)
				y.landlock = landlock
				out, _, denials := y.run(t, text)
				if found := y.leadsOut(t); len(found) > 0 {
					t.Errorf("without mounts %v: %s\n%s\n%q: %q", landlock, text, out, found, denials)
				}
			}
		})
	}
}

// TestLinksGoOnWorking: what package managers, builds and archives do with links is
// as it was.
func TestLinksGoOnWorking(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify")
	for name, text := range map[string]string{
		"npm":           "mkdir -p node_modules/x node_modules/.bin pkg; ln -s ../x/cli.js node_modules/.bin/x; ln -s ../pkg node_modules/pkg; ln -s .. node_modules/self; mv node_modules n2; mkdir deep; mv n2 deep/node_modules; mv deep/node_modules node_modules",
		"workspaces":    "mkdir -p packages/x node_modules/.bin; echo >packages/x/cli.js; ln -s ../packages/x node_modules/x; ln -s ../x/cli.js node_modules/.bin/x; test -f node_modules/.bin/x; mv node_modules n2; mkdir deep; mv packages deep/; ln -sfn ../deep/packages/x n2/x; test -f n2/.bin/x",
		"pnpm":          "mkdir -p node_modules/.pnpm/{a,b}@1/node_modules/{a,b}; ln -s ../../b@1/node_modules/b node_modules/.pnpm/a@1/node_modules/c; ln -s .pnpm/a@1/node_modules/a node_modules/a; mkdir apps; mv node_modules apps/",
		"pnpm's store":  "ln -s $HOME/.cache/pnpm/v10/x x; ln -s ../../.cache/pnpm/v10/y y",
		"bazel":         "ln -s $HOME/.cache/bazel/out bazel-out; ln -s $HOME/.cache/bazel/later bazel-bin; ln -sfn $HOME/.cache/bazel/out bazel-bin",
		"pyenv":         "mkdir -p .venv/bin; ln -s $HOME/.pyenv/versions/3/bin/python .venv/bin/python; ln -s python .venv/bin/python3; ln -s lib .venv/lib64; mv .venv venv; mkdir x; mv venv x",
		"--ro":          "mkdir bin; ln -s $HOME/notes/run bin/run",
		"the system's":  "mkdir bin; ln -s /usr/bin/env bin/env; ln -s /usr/share x; ln -s /usr/lib lib; ln -s /bin b; ln -s /dev/null null; ln -s /proc/mounts m; ln -s /proc/self/fd/1 out; ln -s /dev/stdout out2",
		"a lock":        "ln -s 'ada@host.12:345' .#file; ln -s host-1234 SingletonLock; rm .#file",
		"a build":       "touch libx.so.1.2; ln -s libx.so.1.2 libx.so.1; ln -sf libx.so.1 libx.so; ln -sf libx.so.1.2 libx.so; mkdir out; mv libx.so out; ln -s $W/out $W/a/abs; ln -s ./file ./a/../b || ln -s ./file b",
		"dangling":      "ln -s none/x l; ln -s ./none/deeper/x l2; ln -s $W/none/x l3; mkdir none; ln -s ../none/x none/y",
		"circles":       "ln -s loop loop; ln -s two one; ln -s one two; ln -s one/x three",
		"absolute":      "ln -s $W/a/b x; ln -s $W y; ln x/../../file z 2>/dev/null || ln file z",
		"in /tmp":       "cd /tmp; ln -s $HOME/.bashrc x; ln -s / y; mkdir -p 1/2; ln -s ../../../x 1/2/z; mv 1/2 3",
		"copied":        "mkdir -p t/s; ln -s s t/l; ln -s ../t/l t/s/m; cp -a t t2; tar cf - t | tar xf - -C a; mv t a/b/t; test -L a/b/t/s/m -a -L a/t/l",
		"checked out":   "git init -q /tmp/r; cd /tmp/r; mkdir -p d/e; ln -s d/e l; ln -s ../../l d/e/m; ln -s none/x n; git add .; git -c user.name=a -c user.email=a@b commit -qm x; mkdir $W/co; git --work-tree=$W/co checkout -qf; test -L $W/co/d/e/m -a -L $W/co/n; mv $W/co $W/a/b/c/",
		"a hard link":   "ln -s file l; ln -P l a/l; ln file a/hard",
		"another place": "mkdir x; ln -s x l; mv l l2; mv l2 a/ || true; rm -f a/l2; python3 -c 'import os; os.symlink(\"file\",\"p\"); os.rename(\"p\",\"q\")'",
	} {
		t.Run(name, func(t *testing.T) {
			y := newLinkHome(t)
			if out, code, denials := y.run(t, "set -e; "+text); code != 0 || out != "" || len(denials) > 0 {
				t.Errorf("%s\n%s(%d) %q", text, out, code, denials)
			}
		})
	}
}

// TestLinksBackToFront: a link whose target is absent gets no start from a later link
// to a place that only others write to, below which the human has files.
func TestLinksBackToFront(t *testing.T) {
	testenv.Need(t, "userns", "notify", "landlock")
	for _, how := range []string{"control", "mounts", "landlock"} {
		y := newLinkHome(t)
		y.landlock = how == "landlock"
		dir, err := os.MkdirTemp("/tmp", "bawn-test-") // which the human can't rename, as /srv
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		conf := filepath.Join(dir, "conf")
		if err := os.WriteFile(conf, []byte(canaryText), 0o600); err != nil {
			t.Fatal(err)
		}
		text := "ln -s L" + strings.TrimPrefix(conf, "/tmp") + " notes; ln -s /tmp L"
		if how == "control" {
			bare(t, y.ws, y.ws, text)
		} else if _, _, denials := y.run(t, text); len(denials) != 1 {
			t.Errorf("%s: %q", how, denials)
		}
		bare(t, y.ws, y.ws, "echo x >>notes")
		if got, err := os.ReadFile(conf); err != nil || (string(got) != canaryText) != (how == "control") {
			t.Errorf("%s: %q, %v", how, got, err)
		}
	}
}

// TestLinkAndMoveRace: two sessions in one workspace, of which one makes links in a
// directory that the other one moves up, leave none that leads out.
func TestLinkAndMoveRace(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "python3")
	y := newLinkHome(t)
	const loop = `import os,sys,time
end=time.time()+2; made=0
os.makedirs("1/2",exist_ok=True)
while time.time()<end:
    d=-1
    try:
        if sys.argv[1]=="link":
            d=os.open("1/2/3",os.O_RDONLY)
            os.symlink("../../../x","l",dir_fd=d); made+=1
            os.unlink("l",dir_fd=d)
        else:
            os.makedirs("1/2/3",exist_ok=True)
            os.rename("1/2/3","m"); made+=1
            if all(os.path.lexists("m/l") for i in range(3000)): break # it stays
            os.rename("m","1/2/3")
    except OSError: pass
    if d>=0: os.close(d)
print(made)
`
	made := make(chan string)
	for _, part := range []string{"link", "move"} {
		go func() {
			out, _, _ := y.run(t, "cat >"+part+".py <<'E'\n"+loop+"E\npython3 "+part+".py "+part)
			made <- part + " " + strings.TrimSpace(out)
		}()
	}
	for range 2 {
		if got := <-made; strings.HasSuffix(got, " 0") || !strings.Contains(got, " ") {
			t.Errorf("nothing was raced: %q", got)
		} else {
			t.Log(got)
		}
	}
	if found := y.leadsOut(t); len(found) > 0 {
		t.Errorf("%q", found)
	}
}
