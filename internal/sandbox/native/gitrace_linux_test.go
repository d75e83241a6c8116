package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// gitRace has threads make, fill, move, exchange and remove repositories at the
// same few places, beside one of the host's.
const gitRace = `import ctypes,os,random,threading
libc=ctypes.CDLL(None); names=["a","b","c","a/x","b/x"]
ops=[lambda d:os.makedirs(d,exist_ok=True), lambda d:os.mkdir(d+"/.git"), lambda d:os.mkdir(d+"/.GIT"),
 lambda d:open(d+"/.git/config","w").write("[alias]\n\tx = !id\n"), lambda d:open(d+"/.git/HEAD","w").write("ref: refs/heads/main\n"),
 lambda d:os.mkdir(d+"/.git/objects"), lambda d:os.symlink("/etc/passwd",d+"/.git/COMMIT_EDITMSG"), lambda d:os.mkfifo(d+"/.git/FETCH_HEAD"),
 lambda d:os.rename(d,random.choice(names)), lambda d:libc.renameat2(-100,d.encode(),-100,random.choice(names).encode(),2),
 lambda d:os.rename(d+"/.git/config",d+"/config"), lambda d:os.rename(d+"/config",d+"/.git/config"), lambda d:os.link(d+"/config",d+"/.git/hooks"),
 lambda d:os.rmdir(d+"/.git"), lambda d:os.unlink(d+"/.git/config"), lambda d:os.rmdir(d), lambda d:open(d+"/.git","w").write("gitdir: /tmp\n"), lambda d:os.unlink(d+"/.git"),
 lambda d:os.rename("host/.git",d+"/.git"), lambda d:os.rename(d+"/.git","host/.git/zz"), lambda d:open("host/.git/config","a").write("evil"),
 lambda d:os.rename("host",d), lambda d:os.rename(d,"host"), lambda d:open(d+"/.git/config","a").write("evil"), lambda d:os.truncate(d+"/.git/HEAD",0)]
done=[0]
def one(seed):
    r=random.Random(seed)
    for i in range(1500):
        try: r.choice(ops)(r.choice(names)); done[0]+=1
        except (OSError,ValueError): pass
all=[threading.Thread(target=one,args=(i,)) for i in range(8)]
[t.start() for t in all]; [t.join() for t in all]; print("done",done[0])`

// TestGitRaces: whatever happens at the same time, the host's repository stays what
// it is, wherever it is moved, and nothing of the guest's lies in any other .git.
func TestGitRaces(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "git", "python3")
	ws := workspace(t)
	host(t, ws, `git init -q -b main host && git -C host commit -q --allow-empty -m one`)
	list := `find . -path '*/.git/*' -type f | sed 's|.*/[.]git/||' | sort; find . -name HEAD -path '*/.git/*' -printf '%h\n' | grep '/.git$'`
	sums := `d=$(dirname "$(find . -path '*/.git/HEAD')"); cd "$d" && find . -type f | sort | xargs sha256sum`
	before, was := host(t, ws, sums), strings.Count(host(t, ws, list), "\n")
	if err := os.WriteFile(filepath.Join(ws, "race.py"), []byte(gitRace), 0o600); err != nil {
		t.Fatal(err)
	}
	req := pooled(t, ws)
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	out, code, _ := execute(t, p, plan, `python3 race.py`)
	if code != 0 || !strings.HasPrefix(out, "done ") || out == "done 0\n" {
		t.Errorf("control: nothing was raced: %d: %s", code, out)
	}
	if after, now := host(t, ws, sums), strings.Count(host(t, ws, list), "\n"); after != before || now != was {
		t.Errorf("the host's: %s; before %s; %d entries, before %d:\n%s", after, before, now, was, host(t, ws, list))
	}
	t.Log(out, host(t, req.GitPool, `ls | wc -l`))
}

// TestOtherSession: one session does nothing to the repository that another has
// made, of which it sees the empty .git; a later one that is given the same git
// directory works in it.
func TestOtherSession(t *testing.T) {
	testenv.Need(t, "userns", "notify", "git")
	ws := workspace(t)
	req := pooled(t, ws)
	p := New("")
	run := func(text string) string {
		plan, err := p.Plan(req)
		if err != nil {
			t.Fatal(err)
		}
		out, _, _ := execute(t, p, plan, gitNow+text)
		return out
	}
	run(`git init -q -b main r && cd r && git commit -q --allow-empty -m one`)
	out := run(`evil r/.git/config; mkdir r/.git/objects; rmdir r/.git; mv r/.git x; ls -A r r/.git`)
	if !strings.HasSuffix(out, "r:\n.git\n\nr/.git:\n") {
		t.Errorf("the other session: %q", out)
	}
	entry := strings.TrimSpace(host(t, req.GitPool, `ls`))
	req.Git = append(req.Git, gitOf(ws, req.GitPool, entry))
	if out := run(`cd r && git commit -q --allow-empty -m two && git log --format=%s`); out != "two\none\n" {
		t.Errorf("the later session: %q", out)
	}
}
