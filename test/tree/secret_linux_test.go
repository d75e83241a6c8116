package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/creack/pty"
)

const prompt = "Passphrase of bawn's encrypted files: "

// Both open a vault of encrypted files.
const (
	byPassphrase = "--passphrase-file"
	byIdentity   = "--identity"
)

// keep puts a value into a vault, bound to a host.
func (r *account) keep(t *testing.T, by, name, variable, host string) {
	t.Helper()
	opener := filepath.Join(r.Home, "opener"+by)
	if !exists(opener) {
		id, err := age.GenerateX25519Identity()
		check(t, err)
		check(t, os.WriteFile(opener, []byte(map[string]string{byPassphrase: "correct horse battery", byIdentity: id.String()}[by]+"\n"), 0o600))
	}
	check(t, os.WriteFile(filepath.Join(r.Home, "value"), []byte(modelKey+"-"+name+"\n"), 0o600))
	secret := "bawn secret --store file " + by + " " + opener + " "
	if got := r.Run(t, "/bin/sh", "-c", secret+"set "+name+" <"+r.Home+"/value && "+secret+"bind "+name+" --host "+host+" --bearer --env "+variable); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
}

// typing runs a command at a terminal at which a human types the passphrase as
// often as it is asked for, and returns the screen.
func (r *account) typing(t *testing.T, argv ...string) string {
	t.Helper()
	cmd := r.Command(t.Context(), argv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	check(t, err)
	defer tty.Close()
	defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop()
	var all []byte
	asked := 0
	for buf, err := make([]byte, 4096), error(nil); err == nil; { // ends with EIO
		var n int
		n, err = tty.Read(buf)
		all = append(all, buf[:n]...)
		for ; strings.Count(string(all), prompt) > asked; asked++ {
			_, _ = tty.WriteString("correct horse battery\n")
		}
	}
	_ = cmd.Wait() // the screen says it
	return string(all)
}

// TestPassphrase: the human is asked for the vault's passphrase by the session
// that she has started, and by none that a guest has: a guest sees what is typed
// at its terminal.
func TestPassphrase(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.keep(t, byPassphrase, "tok", "TOK", "api.test")
	lend := []string{"-q", "--secret", "tok"}
	variable := r.Guest("variable", "TOK")
	if screen := r.typing(t, r.bawn(lend, variable...)...); strings.Count(screen, "Passphrase") != 1 || !strings.Contains(screen, "yes") {
		t.Errorf("control: the human: %q", screen)
	}
	screen := r.typing(t, r.bawn(lend, "/bin/sh", "-c", strings.Join(variable, " ")+"; echo below; "+strings.Join(r.bawn(lend, variable...), " ")+"; echo code $?")...)
	own, below, _ := strings.Cut(screen, "below")
	if !strings.Contains(own, "yes") || strings.Contains(below, "Passphrase") || strings.Contains(below, "yes") ||
		!strings.Contains(below, "nobody is asked for at the terminal of a guest") || !strings.Contains(below, "code 125") {
		t.Errorf("a guest: %q", screen)
	}
}

// TestPassphraseDescriptor: where no human sits, the passphrase comes from a descriptor, also
// for a session in the background; what runs inside has neither it nor its number, and a
// session of a guest is not given it.
func TestPassphraseDescriptor(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.keep(t, byPassphrase, "tok", "TOK", "api.test")
	lend := []string{"-q", "--secret", "tok"}
	variable := strings.Join(r.Guest("variable", "TOK"), " ")
	from := func(argv ...string) result {
		return r.Run(t, "/bin/sh", "-c", "BAWN_PASSPHRASE_FD=9 "+strings.Join(argv, " ")+" 9<"+filepath.Join(r.Home, "opener"+byPassphrase))
	}
	if got := r.Run(t, r.bawn(lend, r.Guest("variable", "TOK")...)...); got.Code != 125 || !strings.Contains(got.Err, "the vault needs its passphrase") {
		t.Fatalf("control: without it: %+v", got)
	}
	said(t, "with it", from(r.bawn(lend, variable)...), true)
	inside := variable + "; env | grep PASSPHRASE_FD; cat <&9; cat /proc/self/fd/9; " + strings.Join(r.bawn(lend, variable), " ")
	got := from(r.bawn(lend, "/bin/sh -c '"+inside+"'")...)
	if strings.Count(got.Out, "yes") != 1 || strings.Contains(got.Out+got.Err, "correct horse") || strings.Contains(got.Out, "PASSPHRASE_FD=") {
		t.Errorf("inside: %+v", got)
	}
}

// TestSecretsBelowAnAgent: what an agent starts is lent what commands are, and
// nothing that is bound to a model.
func TestSecretsBelowAnAgent(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.keep(t, byIdentity, "model", "KEY", "api.model.test")
	r.keep(t, byIdentity, "forge", "TOK", "api.forge.test")
	r.Rule(t, "allow", "command", filepath.Join(r.Bin, "guest")+" *")
	lend := []string{"--secret", "model", "--secret", "forge"}
	flags := append([]string{"--model", "api.model.test", "--mode", "permissive"}, lend...)
	key, tok := r.Guest("variable", "KEY"), r.Guest("variable", "TOK")
	said(t, "control: the agent has its key", r.agent(t, flags, key...), true)
	asked := append([]string{"-q"}, lend...)
	said(t, "its child has what commands have", r.agent(t, flags, r.bawn(asked, tok...)...), true)
	said(t, "its child has the key", r.agent(t, flags, r.bawn(asked, key...)...), false)
	r.put(t, "below", "#!/bin/sh\n"+strings.Join(r.bawn(asked, r.Guest("variable", "$1")...), " ")+"\n")
	r.Rule(t, "allow", "command", filepath.Join(r.Work, "below")+" *")
	said(t, "the child of that has it", r.agent(t, flags, r.bawn(asked, filepath.Join(r.Work, "below"), "KEY")...), false)
	said(t, "and what commands have", r.agent(t, flags, r.bawn(asked, filepath.Join(r.Work, "below"), "TOK")...), true)
	below := append([]string{"-q", "--env", "KEY"}, lend...)
	said(t, "by its name", r.agent(t, flags, r.bawn(below, key...)...), false)
}
