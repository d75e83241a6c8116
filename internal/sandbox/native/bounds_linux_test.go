package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// floods hold many calls of the supervisor up.
var floods = map[string]string{
	"connections that nobody accepts": `import errno,socket,threading,time
l=socket.socket(socket.AF_UNIX); l.bind("s"); l.listen(0); seen={}
def one():
    s=socket.socket(socket.AF_UNIX)
    try: s.connect("s"); seen["ok"]=1
    except OSError as e: seen[errno.errorcode[e.errno]]=1
for i in range(600): threading.Thread(target=one,daemon=True).start()
for i in range(200): "EAGAIN" in seen and "ok" in seen or time.sleep(0.1)
print(sorted(seen),flush=True); import os; os._exit(0)`,
	"pipes that nobody reads": `import errno,os,threading,time
os.mkfifo("p"); seen={}
def one():
    try: os.open("p",os.O_WRONLY)
    except OSError as e: seen[errno.errorcode[e.errno]]=1
for i in range(600): threading.Thread(target=one,daemon=True).start()
for i in range(200): "EAGAIN" in seen or time.sleep(0.1)
open("plain","w").write("x"); seen["ok"]=1; print(sorted(seen),flush=True); os._exit(0)`,
}

// TestFloodsAreBounded shows that calls which wait are refused beyond a bound,
// that others go on, and that nothing of them outlives the session.
func TestFloodsAreBounded(t *testing.T) {
	testenv.Need(t, "userns", "notify", "python3")
	script(t, workspace(t), "true") // what a first session starts and keeps
	for name, text := range floods {
		ws := workspace(t)
		if err := os.WriteFile(filepath.Join(ws, "f.py"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		before := runtime.NumGoroutine()
		out, _, _ := script(t, ws, `python3 f.py`)
		if !strings.Contains(out, "'EAGAIN'") || !strings.Contains(out, "'ok'") {
			t.Errorf("%s: got %q", name, out)
		}
		testenv.Until(t, name+": the end of its goroutines", func() bool { return runtime.NumGoroutine() <= before })
	}
}

// TestWhatIsRemovedIsForgotten lets a guest make and remove more than its
// supervisor may remember at a time.
func TestWhatIsRemovedIsForgotten(t *testing.T) {
	testenv.Need(t, "userns", "notify", "python3")
	ws := workspace(t)
	provider := New("")
	req := request(ws)
	req.GitPool = workspace(t)
	g, err := provider.start(must(layout.Layout(req, provider.facts))(t), nil, func(sandbox.Denial) {})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Exec(sandbox.Command{Stdio: [3]*os.File{null, null, null}, Argv: []string{"python3", "-c", `import os,socket
for i in range(50):
    os.mkdir("d"); os.mkdir("d/.git"); open("d/.git/config","w").close(); os.unlink("d/.git/config"); os.rmdir("d/.git"); os.rmdir("d")
    open(".git","w").close(); os.unlink(".git")
    s=socket.socket(socket.AF_UNIX); s.bind("s"); os.unlink("s")
os.mkdir(".git")`}})
	if err != nil {
		t.Fatal(err)
	}
	for range p.Changes() {
	}
	if made, ids, bound := g.Remembered(); made != 1 || ids != 1 || bound != 0 {
		t.Errorf("remembered %d git directories, %d of their mounts, %d sockets; want 1, 1, 0", made, ids, bound)
	}
	if left := must(os.ReadDir(req.GitPool))(t); len(left) != 1 {
		t.Errorf("the pool holds %v; want one entry", left)
	}
}

// must fails the test on an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestTwoSessionsRace has two sessions make one bare repository together, one of
// them its HEAD and the other its refs, until both are there or the time is over.
func TestTwoSessionsRace(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "python3", "git")
	ws, out := workspace(t), workspace(t)
	const loop = `import os,sys,time
end=time.time()+4
while time.time()<end:
    try:
        if sys.argv[1]=="head":
            os.makedirs("b/objects",exist_ok=True)
            open("b/config","w").write("[alias]\n\tx = !touch ` + "$OUT" + `/pwned\n")
            open("b/h","w").write("ref: refs/heads/main\n"); os.rename("b/h","b/HEAD")
        else:
            os.mkdir("b/refs")
    except OSError: pass
    if os.path.exists("b/HEAD") and os.path.exists("b/refs"): break
    for f,remove in ("b/HEAD",os.unlink),("b/refs",os.rmdir):
        try: remove(f)
        except OSError: pass
`
	done := make(chan bool)
	for _, part := range []string{"head", "refs"} {
		go func() {
			defer func() { done <- true }()
			script(t, ws, "cat >"+part+".py <<'E'\n"+strings.ReplaceAll(loop, "$OUT", out)+"E\npython3 "+part+".py "+part)
		}()
	}
	<-done
	<-done
	cmd := exec.Command("git", "x")
	cmd.Dir = filepath.Join(ws, "b")
	text, err := cmd.CombinedOutput()
	if _, err := os.Stat(filepath.Join(out, "pwned")); err == nil {
		t.Error("the host executed what two sessions made together")
	}
	if _, err := os.Stat(filepath.Join(ws, "b/objects")); err != nil {
		t.Errorf("control: nothing was raced: %v", err)
	}
	t.Logf("git x: %v: %s", err, text)
}
