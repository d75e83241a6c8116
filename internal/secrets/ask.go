package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// PassphraseFD is the environment variable that names the descriptor from which a
// passphrase is read.
const PassphraseFD = "BAWN_PASSPHRASE_FD"

// Standard returns the options of the user's own vault. The index is in
// $XDG_CONFIG_HOME/bawn (default ~/.config/bawn), the files are in
// $XDG_STATE_HOME/bawn (default ~/.local/state/bawn). environ is this process's environment. The
// passphrase comes from passFile, a file that only the user can read, from the
// descriptor that BAWN_PASSPHRASE_FD names, or from the controlling terminal. A
// variable that holds the passphrase itself is refused.
func Standard(environ []string, passFile string) (Options, error) {
	env := func(name string) string {
		for i := len(environ) - 1; i >= 0; i-- {
			if v, ok := strings.CutPrefix(environ[i], name+"="); ok {
				return v
			}
		}
		return ""
	}
	o := Options{Environ: environ, Now: time.Now}
	for _, dir := range []struct {
		into        *string
		xdg, atHome string
	}{{&o.ConfigDir, "XDG_CONFIG_HOME", ".config"}, {&o.StateDir, "XDG_STATE_HOME", ".local/state"}} {
		base := env(dir.xdg)
		if !filepath.IsAbs(base) { // a relative one is to be ignored: XDG base directories, section "Environment variables"
			base = filepath.Join(env("HOME"), dir.atHome)
		}
		if !filepath.IsAbs(base) {
			return Options{}, failure("set HOME to your home directory", "HOME is %q; want an absolute path", env("HOME"))
		}
		*dir.into = filepath.Join(base, "bawn")
	}
	var err error
	o.Passphrase, err = asker(env("BAWN_PASSPHRASE"), env(PassphraseFD), passFile)
	return o, err
}

// asker returns the function that reads the passphrase.
func asker(value, fd, file string) (func(bool) ([]byte, error), error) {
	switch {
	case value != "":
		return nil, failure("use --passphrase-file, or BAWN_PASSPHRASE_FD with the number of a descriptor",
			"BAWN_PASSPHRASE is set: a passphrase in the environment can be read by every program that is started; it is not used")
	case file != "":
		return func(bool) ([]byte, error) {
			data, err := readOwn(file, maxIdentity)
			if err != nil {
				return nil, fmt.Errorf("the passphrase file: %w", err)
			}
			return FirstLine(data), nil
		}, nil
	case fd != "":
		n, err := strconv.Atoi(fd)
		if err != nil || n < 0 {
			return nil, failure("for example: BAWN_PASSPHRASE_FD=3 bawn … 3<file", "%s is %q; want the number of a descriptor", PassphraseFD, fd)
		}
		return func(bool) ([]byte, error) { return readFD(n) }, nil
	}
	return onTerminal, nil
}

// readFD reads the first line of a descriptor and closes it. A file is read from its
// beginning, wherever another process that shares the descriptor has left it: the two networks
// of a split session do.
func readFD(n int) ([]byte, error) {
	f := os.NewFile(uintptr(n), "descriptor "+strconv.Itoa(n))
	if f == nil {
		return nil, fmt.Errorf("%s: %d is no descriptor", PassphraseFD, n)
	}
	defer f.Close()
	var from io.Reader = f
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		from = io.NewSectionReader(f, 0, maxIdentity)
	}
	data, err := io.ReadAll(io.LimitReader(from, maxIdentity))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", PassphraseFD, err)
	}
	return FirstLine(data), nil
}

// FirstLine returns data up to its first line break and zeroes the rest.
func FirstLine(data []byte) []byte {
	if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
		clear(data[i:])
		data = data[:i]
	}
	return data
}

// onTerminal asks the human, twice for a new passphrase.
func onTerminal(anew bool) ([]byte, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, failure("run it on a terminal, give --passphrase-file or "+PassphraseFD+", or make a key with age-keygen and give --identity FILE",
			"the vault needs its passphrase, and there is no terminal to ask on; nothing is ever kept plain")
	}
	defer tty.Close()
	if anew {
		return AskTwice(tty, fmt.Sprintf("There is no keyring here. A new passphrase for bawn's encrypted files (%d characters or more): ", MinPassphrase), "The same again: ")
	}
	return Ask(tty, "Passphrase of bawn's encrypted files: ")
}

// Unattended is Options.Passphrase for a process whose terminal is a guest's. It
// never prompts: the guest would see what is typed, or try passphrases itself.
func Unattended(bool) ([]byte, error) {
	return nil, failure("lend the secret to the first session and run the command in that one, or keep the vault in a keyring or with --identity FILE",
		"the vault needs its passphrase, which nobody is asked for at the terminal of a guest; "+
			"run the command without a session of its own, or let the human keep the vault in a keyring or with an identity file (bawn secret set --identity FILE)")
}

// AskTwice reads a new value from a terminal twice without showing it. Two different
// values are an error.
func AskTwice(tty *os.File, prompt, again string) ([]byte, error) {
	texts, err := ask(tty, prompt, again)
	if err != nil {
		return nil, err
	}
	defer clear(texts[1])
	if !bytes.Equal(texts[0], texts[1]) {
		clear(texts[0])
		return nil, failure("try again", "what was typed is not twice the same")
	}
	return texts[0], nil
}

// Ask reads a line from a terminal without showing it, at most maxLine bytes.
// SIGINT or SIGTERM restores the terminal and is an error.
func Ask(tty *os.File, prompt string) ([]byte, error) {
	texts, err := ask(tty, prompt)
	if err != nil {
		return nil, err
	}
	return texts[0], nil
}

// maxLine is the longest line that a terminal hands over (termios(3)).
const maxLine = 4096

// ask asks one or several questions. The echo is off from before the first question
// until the last answer, so that text typed early is not shown.
func ask(tty *os.File, prompts ...string) ([][]byte, error) {
	fd := int(tty.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, fmt.Errorf("ask on the terminal: %w", err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stop)
	quiet := *before
	quiet.Lflag &^= unix.ECHO
	quiet.Lflag |= unix.ICANON | unix.ISIG
	quiet.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, setTermios, &quiet); err != nil {
		return nil, fmt.Errorf("ask on the terminal: %w", err)
	}
	defer func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }()
	type answer struct {
		texts [][]byte
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		texts, err := answers(tty, prompts)
		done <- answer{texts, err}
	}()
	select {
	case a := <-done:
		return a.texts, a.err
	case <-stop:
		_, _ = io.WriteString(tty, "\n")
		return nil, errors.New("interrupted")
	}
}

func answers(tty *os.File, prompts []string) ([][]byte, error) {
	var out [][]byte
	for _, p := range prompts {
		if _, err := io.WriteString(tty, p); err != nil {
			return nil, err
		}
		buf := make([]byte, maxLine+1)
		n, err := tty.Read(buf)
		_, _ = io.WriteString(tty, "\n")
		switch {
		case errors.Is(err, io.EOF), n == 0:
			return nil, errors.New("the terminal was closed instead of an answer")
		case err != nil:
			return nil, err
		case buf[n-1] != '\n':
			clear(buf)
			return nil, failure("pipe it in instead", "a terminal takes lines of %d bytes at most", maxLine-1)
		}
		out = append(out, buf[:n-1])
	}
	return out, nil
}
