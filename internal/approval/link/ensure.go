package link

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Program is a relay that can be started.
type Program struct {
	Path    string   // of bawnd
	Args    []string // for example "serve", "--on-demand"
	Environ []string
	Socket  string // where it listens when it is up
	Log     string // a file to which its log is appended
	Stopped string // while this file exists Ensure starts nothing; "": no such file
}

// ErrStopped says that the user has stopped the relay and does not want it
// started.
var ErrStopped = errors.New(`the relay was stopped with "bawn serve --stop"; "bawn serve" starts it`)

// ReadMark reports whether the file that says so is there.
func ReadMark(path string) (stopped bool, err error) {
	_, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// How long a relay may take to listen, and how long it is looked for after the
// one that was started has given up: another may have been first.
const (
	startTime = 15 * time.Second
	lookAgain = time.Second
	lookEvery = 5 * time.Millisecond
)

// Ensure returns when a relay listens. It starts a relay if none runs, in its
// own session, so that it outlives us. Several may do so at once; the relay
// sees to it that there is one.
func (p *Program) Ensure(ctx context.Context) error {
	if p.listens() {
		return nil
	}
	if p.Stopped != "" {
		if stopped, err := ReadMark(p.Stopped); stopped || err != nil {
			return cmp.Or(err, ErrStopped)
		}
	}
	log, err := os.OpenFile(p.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	start, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env, cmd.Dir, cmd.Stderr, cmd.Stdout = p.Environ, "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %q: %w", p.Path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return p.await(ctx, ended, start)
}

// await looks for the relay until it listens, or can't be expected to.
func (p *Program) await(ctx context.Context, ended <-chan error, start int64) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for !p.listens() {
		select {
		case <-ended: // what it logged says why
			ended = nil
			time.AfterFunc(lookAgain, cancel)
		case <-ctx.Done():
			return fmt.Errorf("the relay does not come up: %s", p.said(start))
		case <-time.After(lookEvery):
		}
	}
	return nil
}

func (p *Program) listens() bool { return Listens(p.Socket) }

// Listens reports whether a relay takes connections at a socket.
func Listens(path string) bool {
	conn, err := dial(path)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// said returns the last that a relay has logged.
func (p *Program) said(start int64) string {
	f, err := os.Open(p.Log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, start, 64<<10))
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if last := strings.TrimSpace(string(lines[len(lines)-1])); last != "" {
		return last
	}
	return fmt.Sprintf("it says nothing within %v", startTime)
}
