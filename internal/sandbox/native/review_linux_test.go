package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// chmodRace renames $1 to $2 while a second thread takes the rights to look
// into the source's directory away and gives them back.
const chmodRace = `import os,sys,threading,time
os.makedirs("rd",exist_ok=True); open("rd/f","w").write("evil")
stop=[]
def flip():
    while not stop: os.chmod("rd",0); os.chmod("rd",0o700)
threading.Thread(target=flip,daemon=True).start()
end=time.time()+2
while time.time()<end:
    try: os.rename("rd/f",".exrc"); break
    except OSError: pass
stop.append(1)`

// bareRace renames $1 to $2 in a directory that holds $3, while a second
// thread takes the rights to look into it away and gives them back.
const bareRace = `import os,sys,threading,time
os.makedirs("b/objects",exist_ok=True); os.makedirs("b/refs",exist_ok=True)
for f,text in ("HEAD","ref: refs/heads/main\n"),("config","[alias]\n\tx = !id\n"): open("b/"+f+".new","w").write(text)
os.rename("b/"+sys.argv[1]+".new","b/"+sys.argv[1]); new="b/"+sys.argv[2]
stop=[]
def flip():
    while not stop: os.chmod("b",0); os.chmod("b",0o700)
threading.Thread(target=flip,daemon=True).start()
end=time.time()+2
while time.time()<end:
    try: os.rename(new+".new",new); break
    except OSError: pass
stop.append(1); time.sleep(.1); os.chmod("b",0o700)`

// TestDetours are ways around the supervisor that a review has found.
func TestDetours(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "python3", "git")
	cases := map[string]struct{ script, effect string }{
		"a name carried out of git's data":     {`mkdir -p .git/objects/d && echo evil > .git/objects/d/.envrc && mv .git/objects/d proj`, "proj/.envrc"},
		"a repository carried out of it":       {`mkdir -p .git/refs/d/.git/hooks && echo evil > .git/refs/d/.git/hooks/pre-commit && mv .git/refs/d proj`, "proj/.git/hooks/pre-commit"},
		"a rename that can't be looked at":     {`python3 -c '` + chmodRace + `'`, ".exrc"},
		"a repository that can't be looked at": {`python3 -c '` + bareRace + `' HEAD config`, "b/config"},
		"the same with HEAD last":              {`python3 -c '` + bareRace + `' config HEAD`, "b/HEAD"},
		"a hard link out of git's data":        {`echo evil > .git/objects/x && ln .git/objects/x .envrc`, ".envrc"},
	}
	for name, c := range cases {
		for _, inside := range []bool{false, true} {
			ws := workspace(t)
			if out, err := exec.Command("git", "init", "-q", ws).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if inside {
				script(t, ws, c.script)
			} else {
				bare(t, ws, ws, c.script)
			}
			if _, err := os.Lstat(filepath.Join(ws, c.effect)); (err == nil) == inside {
				t.Errorf("%s, inside %v: %s is there: %v", name, inside, c.effect, err == nil)
			}
		}
	}
}

// TestHostFIFO writes to a FIFO of the host, which a read-only mount lets
// through.
func TestHostFIFO(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	ws, out := workspace(t), workspace(t)
	fifo := filepath.Join(out, "fifo")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, inside := range []bool{false, true} {
		if inside {
			script(t, ws, `echo evil > `+fifo)
		} else {
			bare(t, ws, out, `echo evil > `+fifo)
		}
		n, err := unix.IoctlGetInt(int(reader.Fd()), unix.TIOCINQ)
		if err != nil || (n > 0) == inside {
			t.Errorf("inside %v: %d bytes arrived, %v", inside, n, err)
		}
		if n > 0 {
			_, _ = reader.Read(make([]byte, n))
		}
	}
}
