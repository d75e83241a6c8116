package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/bench/measure"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/shim"
)

// argv is what is run: the shell starts, finds nothing to do, and ends.
var argv = []string{"/bin/sh", "-c", ":"}

func serve(in io.Reader, out io.Writer) error {
	return measure.Serve(in, out, func(variant string) (any, error) {
		if variant == connected {
			return atSocket()
		}
		return measure.Run(exec.Command(argv[0], argv[1:]...))
	})
}

// atSocket hands the command to the session socket, as the shim does, without a process of
// its own.
func atSocket() (measure.Sample, error) {
	dir, err := os.Getwd()
	if err != nil {
		return measure.Sample{}, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return measure.Sample{}, err
	}
	defer null.Close()
	began := time.Now()
	conn, err := dial(shim.Socket)
	if err != nil {
		return measure.Sample{}, fmt.Errorf("connect to the session socket: %w", err)
	}
	defer conn.Close()
	x := &intent.Exec{Argv: argv, Dir: dir, Env: exec.Command(argv[0]).Environ(), Stdio: [3]bool{true, true, true}}
	if err := conn.Send(&intent.Hello{Exec: x}, null, null, null); err != nil {
		return measure.Sample{}, err
	}
	for {
		var r intent.Reply
		if _, err := conn.Receive(&r); err != nil {
			return measure.Sample{}, err
		}
		switch {
		case r.Denied != nil:
			return measure.Sample{}, errors.New("refused: " + r.Denied.Reason)
		case r.Exit != nil && r.Exit.Code != 0:
			return measure.Sample{}, fmt.Errorf("ended with %d", r.Exit.Code)
		case r.Exit != nil:
			return measure.Sample{Wall: time.Since(began)}, nil
		}
	}
}

func dial(path string) (*ipc.Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	if err = unix.SetNonblock(fd, true); err == nil { // as the shim does
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return ipc.New(os.NewFile(uintptr(fd), "socket"), intent.Limits)
}
