package secrets

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestMain runs the test binary as one of the programs below, where the
// variable says so.
func TestMain(m *testing.M) {
	if play := programs[os.Getenv("BAWN_SECRETS_TEST")]; play != nil {
		if err := play(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var programs = map[string]func() error{
	"keyring": inKeyring, "locked": inLockedKeyring, "none": withoutKeyring, "library": libraryAlone,
	"hold": hold, "spy": spy, "writer": write,
}

const held = "value-that-nobody-may-find"

// inHome is the vault of the program's own home directory.
func inHome() (*Vault, error) {
	o, err := Standard(os.Environ(), "")
	if err != nil {
		return nil, err
	}
	o.work, o.Wait = 4, 5*time.Second
	o.Passphrase = func(bool) ([]byte, error) { return []byte(passphrase), nil }
	return Open(o)
}

// inKeyring does all with a real Secret Service.
func inKeyring() error {
	ctx := context.Background()
	if err := Harden(); err != nil { // as the program does; the bus must not mind
		return err
	}
	v, err := inHome()
	if err != nil {
		return err
	}
	keep := func(name, value string) error { return v.Set(ctx, name, bawn.NewSecret([]byte(value))) }
	if err := errors.Join(keep("key", "old-"+held), keep("key", held), keep("big", strings.Repeat("b", MaxValue)), keep("gone", held)); err != nil {
		return err
	}
	old, _ := v.index()
	gone := old.find("gone").ID
	if err := v.Remove(ctx, "gone"); err != nil {
		return err
	}
	if _, err := keyring.Get(service, gone); !errors.Is(err, keyring.ErrNotFound) {
		return fmt.Errorf("the removed value: %w", err)
	}
	again, err := inHome()
	if err != nil {
		return err
	}
	s, err := again.Get(ctx, "key")
	list, _ := again.List()
	if err != nil || string(s.Reveal()) != held || len(list) != 2 || list[0].Store != Keyring {
		return fmt.Errorf("got %d bytes, %v, %v", len(s.Reveal()), err, list)
	}
	idx, _ := again.index()
	if len(idx.Pending) != 0 {
		return fmt.Errorf("pending: %v", idx.Pending)
	}
	if err := keyring.Delete(service, idx.find("big").ID); err != nil { // the human does
		return err
	}
	if _, err := again.Get(ctx, "big"); err == nil || !strings.Contains(err.Error(), "the keyring has no value") {
		return fmt.Errorf("a value deleted outside: %w", err)
	}
	return nil
}

// inLockedKeyring wants an error with a remedy, and no file in its place.
func inLockedKeyring() error {
	v, err := inHome()
	if err != nil {
		return err
	}
	err = v.Set(context.Background(), "key", bawn.NewSecret([]byte(held)))
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Hint, "unlock the keyring") || strings.Contains(err.Error(), held) {
		return fmt.Errorf("a locked keyring: %w", err)
	}
	if list, err := v.List(); err != nil || len(list) != 0 {
		return fmt.Errorf("%v, %w", list, err)
	}
	return nil
}

// withoutKeyring wants the files to be used.
func withoutKeyring() error {
	v, err := inHome()
	if err != nil {
		return err
	}
	if err := v.Set(context.Background(), "key", bawn.NewSecret([]byte(held))); err != nil {
		return err
	}
	if list, err := v.List(); err != nil || len(list) != 1 || list[0].Store != File {
		return fmt.Errorf("%v, %w", list, err)
	}
	return nil
}

// libraryAlone is the control: what the library does by itself.
func libraryAlone() error {
	_ = keyring.Set(service, "x", "y")
	return nil
}

// hold reads a value into memory and waits. With HARDEN it protects itself.
func hold() error {
	if os.Getenv("HARDEN") != "" {
		if err := Harden(); err != nil {
			return err
		}
	}
	v, err := inHome()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, int64(len(held))))
	if err != nil {
		return err
	}
	if err := v.Set(context.Background(), "key", bawn.NewSecret(text)); err != nil {
		return err
	}
	clear(text)
	s, err := v.Get(context.Background(), "key")
	if err != nil {
		return err
	}
	fmt.Printf("%d\n", len(s.Reveal()))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// spy starts hold as its child and looks for the value in its memory, as a
// debugger of the same user would.
func spy() error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BAWN_SECRETS_TEST=hold")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer in.Close()
	if _, err := io.WriteString(in, held); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	for _, file := range []string{"cmdline", "environ"} {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, file)); bytes.Contains(text, []byte(held)) {
			fmt.Println("found in " + file)
		}
	}
	found, err := inMemory(cmd.Process.Pid)
	fmt.Println("memory:", found, err)
	return nil
}

// inMemory looks for the value in the writable mappings of a process.
func inMemory(pid int) (bool, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false, err
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return false, err
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var lo, hi int64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &lo, &hi, &mode); err != nil || !strings.HasPrefix(mode, "rw") || hi-lo > 64<<20 {
			continue
		}
		buf := make([]byte, hi-lo)
		if n, _ := mem.ReadAt(buf, lo); bytes.Contains(buf[:n], []byte(held)) {
			return true, nil
		}
	}
	return false, nil
}

// write sets one value after the other until it is killed.
func write() error {
	v, err := inHome()
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := v.Set(context.Background(), "key", bawn.NewSecret(fmt.Appendf(nil, "value-number-%06d", i))); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// TestKilled kills a writer at any moment: what the vault says afterwards is
// the last value that was promised or the next, and nothing is left behind.
func TestKilled(t *testing.T) {
	home := t.TempDir()
	last, reached := -1, 0
	for round := range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"BAWN_SECRETS_TEST=writer", "HOME=" + home}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := func() {
			time.AfterFunc(time.Duration(20+round*7)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		}
		if round%2 == 0 { // else once it has written something, however long that takes
			kill()
		}
		last = -1
		for lines := bufio.NewScanner(out); lines.Scan(); reached++ {
			if round%2 != 0 && last < 0 {
				kill()
			}
			if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait()
		o := options(t)
		o.ConfigDir, o.StateDir = filepath.Join(home, ".config/bawn"), filepath.Join(home, ".local/state/bawn")
		v := open(t, o)
		s, err := v.Get(t.Context(), "key")
		if last < 0 { // before its first promise: what was there before, or nothing
			continue
		}
		got := string(s.Reveal())
		if want := fmt.Sprintf("value-number-%06d", last); err != nil || got != want && got != fmt.Sprintf("value-number-%06d", last+1) {
			t.Fatalf("round %d: %q, %v; want %q or the next", round, got, err, want)
		}
		set(t, v, "another", "another-value")
		if files, _ := filepath.Glob(filepath.Join(o.StateDir, "vault", "*.age")); len(files) != 3 {
			t.Fatalf("round %d: files %q", round, files)
		}
	}
	if reached < 6 {
		t.Errorf("only %d values were written: the test shows little", reached)
	}
}

// play runs the test binary as a program, in a home of its own, behind wrap.
// As root it runs as nobody where asked.
func play(t *testing.T, program string, asNobody bool, wrap []string, env ...string) (string, string) {
	t.Helper()
	home := t.TempDir()
	self := filepath.Join(home, "program")
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, text, 0o755); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(home, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	argv := append(wrap, self)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = home
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" + run, "BAWN_SECRETS_TEST=" + program}, env...)
	cmd.WaitDelay = 20 * time.Second
	if asNobody && os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := errors.Join(os.Chown(home, nobody, nobody), os.Chown(run, nobody, nobody), os.Chmod(filepath.Dir(home), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	if err := os.Remove(self); err != nil { // it has the value in its text
		t.Fatal(err)
	}
	return home, string(out)
}

// inSession is the wrapper for a session bus with a keyring.
func inSession(daemon string) []string {
	return []string{"dbus-run-session", "--", "sh", "-c", daemon + ` "$@"`, "sh"}
}

const (
	unlocked = `printf keyring-password | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1;`
	locked1  = unlocked + ` gnome-keyring-daemon --replace --start --components=secrets >/dev/null 2>&1;`
)

// TestKeyring uses gnome-keyring on a session bus of its own.
func TestKeyring(t *testing.T) {
	testenv.Need(t, "keyring")
	for _, nobody := range []bool{false, true} {
		home, _ := play(t, "keyring", nobody, inSession(unlocked))
		wantNowhere(t, home, held)
	}
}

func TestLockedKeyring(t *testing.T) {
	testenv.Need(t, "keyring")
	home, _ := play(t, "locked", false, inSession(locked1))
	wantNowhere(t, home, held)
}

// TestNoKeyring: a bus that has no Secret Service, and no bus. Where there is
// no bus the library would start one.
func TestNoKeyring(t *testing.T) {
	testenv.Need(t, "keyring")
	conf := filepath.Join(t.TempDir(), "bus.conf")
	text := `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	home, _ := play(t, "none", false, []string{"dbus-run-session", "--config-file=" + conf, "--"})
	wantNowhere(t, home, held)

	bin := t.TempDir()
	mark := filepath.Join(bin, "launched")
	if err := os.WriteFile(filepath.Join(bin, "dbus-launch"), []byte("#!/bin/sh\n: >"+mark+"\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + bin + ":" + os.Getenv("PATH")
	for _, address := range []string{"UNUSED=1", "DBUS_SESSION_BUS_ADDRESS=", "DBUS_SESSION_BUS_ADDRESS=autolaunch:"} {
		home, _ = play(t, "none", false, nil, path, address)
		wantNowhere(t, home, held)
		if _, err := os.Stat(mark); err == nil {
			t.Fatalf("%s: a session bus was started", address)
		}
	}
	play(t, "library", false, nil, path)
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("control: the library by itself starts none: %v", err)
	}
}

// TestDeadBus: a bus that is named and does not answer is no reason to use
// files unasked.
func TestDeadBus(t *testing.T) {
	const address = "unix:path=/nonexistent/bus"
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	o := options(t)
	o.Store, o.Environ = "", []string{"DBUS_SESSION_BUS_ADDRESS=" + address}
	err := open(t, o).Set(t.Context(), "key", bawn.NewSecret([]byte("value-number-one")))
	wantError(t, err, "session bus")
	if files := append(wantOnly(t, o.StateDir), wantOnly(t, o.ConfigDir)...); len(files) != 0 {
		t.Errorf("it left %q", files)
	}
	o.Store = File
	set(t, open(t, o), "key", "value-number-one")
}

// TestSpy reads the memory of a process that holds a value, as the same user
// without privileges: refused for one that is hardened, and the control finds
// it in one that is not.
func TestSpy(t *testing.T) {
	testenv.Need(t, "user")
	for _, tt := range []struct{ env, want string }{{"HARDEN=1", "memory: false open .*permission denied"}, {"HARDEN=", "memory: true <nil>"}} {
		home, out := play(t, "spy", true, nil, tt.env)
		if !regexp.MustCompile(tt.want).MatchString(out) || strings.Contains(out, "found in") {
			t.Errorf("%s: %q; want %q", tt.env, out, tt.want)
		}
		wantNowhere(t, home, held)
	}
}

// wantNowhere looks for a value below a directory, as it is and encoded. The
// control is a file that has it.
func wantNowhere(t *testing.T, dir, value string) {
	t.Helper()
	if found := findBelow(t, dir, value); len(found) > 0 {
		t.Errorf("the value is in %q", found)
	}
	plain := filepath.Join(dir, "control")
	if err := os.WriteFile(plain, []byte("x="+hex.EncodeToString([]byte(value))), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := findBelow(t, dir, value); len(found) != 1 {
		t.Errorf("control: the value is in %q", found)
	}
}

func findBelow(t *testing.T, dir, value string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // of a daemon that is ending
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, form := range []string{value, hex.EncodeToString([]byte(value)), base64.RawStdEncoding.EncodeToString([]byte(value))} {
			if bytes.Contains(text, []byte(form)) {
				found = append(found, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPagesOfValues: locked in memory, left out of dumps and children.
func TestPagesOfValues(t *testing.T) {
	l, note := lockedCopy([]byte("value"))
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil || note != "" {
		t.Fatal(err, note)
	}
	_, rest, ok := strings.Cut(string(smaps), strings.TrimPrefix(fmt.Sprintf("%p", l.bytes), "0x")+"-")
	flags := regexp.MustCompile(`VmFlags:.*`).FindString(rest)
	for _, want := range []string{" lo", " dd", " dc"} {
		if !ok || !strings.Contains(flags, want) {
			t.Errorf("flags of the pages are %q; want %q", flags, want)
		}
	}
	l.wipe()
	if string(l.bytes) != "\x00\x00\x00\x00\x00" {
		t.Errorf("wiped: %q", l.bytes)
	}
}
