package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// reopenRace opens descriptor 9 again for writing while a second thread makes
// it mean standard input and a file of the guest's in turn.
const reopenRace = `import os,threading,time
own=os.open("own",os.O_RDWR|os.O_CREAT,0o644); stop=[]
def flip():
    while not stop: os.dup2(0,9); os.dup2(own,9)
os.dup2(own,9); threading.Thread(target=flip,daemon=True).start()
end=time.time()+2; n=0
while time.time()<end:
    try:
        fd=os.open("/proc/self/fd/9",os.O_WRONLY); os.write(fd,b"evil"); os.close(fd); n+=1
    except OSError: pass
stop.append(1); print("opened", n>0)`

// TestDescriptorsOfTheHost writes to a file of the host's, outside the
// workspace, that the guest was given for reading.
func TestDescriptorsOfTheHost(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "python3")
	attacks := map[string]string{
		"by /dev/stdin":     `echo evil >>/dev/stdin`,
		"by its number":     `echo evil >>/proc/self/fd/0`,
		"by its PID":        `echo evil >>/proc/$$/fd/0`,
		"by a link":         `ln -s /proc/self/fd/0 l; echo evil >>l`,
		"through a race":    `python3 race.py`,
		"by truncate(2)":    `python3 -c 'import os; os.truncate("/proc/self/fd/0",0)'; grep -q . /dev/stdin || echo evil`,
		"by a name of it":   `ln -L /dev/stdin alias && echo evil >>alias`,
		"with a mode to it": `python3 -c 'import os; fd=os.open("/dev/stdin",os.O_RDWR); os.write(fd,b"evil")'`,
	}
	for name, attack := range attacks {
		for _, inside := range []bool{false, true} {
			ws, out := workspace(t), filepath.Join(workspace(t), "file")
			for f, text := range map[string]string{filepath.Join(ws, "race.py"): reopenRace, out: "host\n"} {
				if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			in := must(os.Open(out))(t)
			text := runWith(t, ws, in, attack, inside)
			in.Close()
			got := string(must(os.ReadFile(out))(t))
			if unchanged := got == "host\n"; unchanged != inside && name != "by a name of it" {
				t.Errorf("%s, inside %v: the file holds %q; %s", name, inside, got, text)
			} else if inside && !unchanged {
				t.Errorf("%s: the file holds %q", name, got)
			}
			if name == "through a race" && !strings.Contains(text, "opened True") {
				t.Errorf("nothing was raced: %s", text)
			}
		}
	}
}

// runWith runs a script with a standard input, in a session or unsandboxed.
func runWith(t *testing.T, ws string, in *os.File, text string, inside bool) string {
	t.Helper()
	if !inside {
		cmd := exec.Command("bash", "-c", text)
		cmd.Dir, cmd.Stdin = ws, in
		out, _ := cmd.CombinedOutput() // the file is what counts
		return string(out)
	}
	p := New("")
	g := must(p.Start(must(p.Plan(request(ws)))(t), func(sandbox.Denial) {}))(t)
	defer g.Close()
	out := must(os.CreateTemp(t.TempDir(), "out"))(t)
	defer out.Close()
	proc := must(g.Exec(sandbox.Command{Argv: []string{"bash", "-c", text}, Stdio: [3]*os.File{in, out, out}}))(t)
	for range proc.Changes() {
	}
	return string(must(os.ReadFile(out.Name()))(t))
}

// TestNextRungRefusesWhatItCantClose asks for closed places inside a writable
// one, which only mounts can close. Native closes them.
func TestNextRungRefusesWhatItCantClose(t *testing.T) {
	testenv.Need(t, "landlock", "userns", "notify")
	for access, want := range map[bawn.Access]bool{bawn.Hidden: false, bawn.ReadOnly: false, bawn.ReadWrite: true} {
		ws := workspace(t)
		secret := filepath.Join(ws, "secret")
		if err := os.WriteFile(secret, []byte("SECRET\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		req := request(ws)
		req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: secret, Access: access, Why: "test"})
		req.Session.ID = filepath.Base(ws)
		if _, err := NewLandlock("").Plan(req); (err == nil) != want {
			t.Errorf("access %v: got %v, want a plan: %v", access, err, want)
		}
		p := New("")
		text, _, _ := execute(t, p, must(p.Plan(req))(t), `grep SECRET secret; echo PWNED >>secret`)
		after := string(must(os.ReadFile(secret))(t))
		if read, written := strings.Contains(text, "SECRET"), strings.Contains(after, "PWNED"); read == (access == bawn.Hidden) || written != want {
			t.Errorf("native, access %v: read %v, written %v", access, read, written)
		}
	}
}

// TestNamingRequests makes the requests of btrfs that name directories, which
// no supervisor sees. Elsewhere than on btrfs they come to nothing, but not
// with the filter's errno.
func TestNamingRequests(t *testing.T) {
	testenv.Need(t, "userns", "notify", "python3")
	const requests = `python3 -c '
import errno,fcntl,os,struct
d=os.open(".",os.O_RDONLY)
for request in 0x50009401,0x5000940e,0x5000940f,0x50009417,0x50009418,0x5000943f:
    try: fcntl.ioctl(d,request,bytearray(struct.pack("=q4088s",d,b".vscode"))); print("DONE")
    except OSError as e: print(errno.errorcode[e.errno])
'; test -e .vscode && echo PWNED`
	inside, _, _ := script(t, workspace(t), requests)
	if got := strings.Fields(inside); len(got) != 6 || strings.Count(inside, "EPERM") != 6 {
		t.Errorf("inside: got %v, want EPERM each time", got)
	}
	cmd := exec.Command("bash", "-c", requests)
	cmd.Dir = workspace(t)
	out, _ := cmd.CombinedOutput()
	if strings.Contains(string(out), "EPERM") && os.Geteuid() == 0 || len(strings.Fields(string(out))) < 6 {
		t.Errorf("control: got %s", out)
	}
}

// TestInactiveHook switches a hook on that is there but not executable.
func TestInactiveHook(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "git")
	const inactive = ` && printf '#!/bin/sh\ntouch "$OUT/pwned"\n' >`
	for name, a := range map[string]ambush{
		"plain":     {`git init -q .` + inactive + `.git/hooks/pre-commit`, `chmod +x .git/hooks/pre-commit; chmod -R a+x .git/hooks`, commitEmpty},
		"separate":  {separate + inactive + `store/hooks/pre-commit`, `chmod +x store/hooks/pre-commit`, commitEmpty},
		"bare":      {dotBare + inactive + `.bare/hooks/pre-commit`, `chmod +x .bare/hooks/pre-commit`, `cd main && ` + commitEmpty},
		"hooksPath": {`git init -q . && mkdir dev && git config core.hooksPath dev` + inactive + `dev/pre-commit`, `chmod +x dev/pre-commit`, commitEmpty},
		"a link":    {`git init -q . && ln -s ../../pc .git/hooks/pre-commit` + inactive + `pc`, `chmod +x pc`, commitEmpty},
	} {
		for _, inside := range []bool{false, true} {
			if got := a.try(t, inside, New("")); got == inside {
				t.Errorf("%s, inside %v: executed %v", name, inside, got)
			}
		}
	}
}
