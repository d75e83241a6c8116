package dockerapi

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// WatchArgument is the first argument that makes bawnd a watcher.
const WatchArgument = "@containers"

// A watcher is a process that ends the broker's containers if the broker is killed:
// containers are children of the engine, not of the broker. It holds one end of a pipe,
// and so knows when the other one is gone, and it is started before there is anything to
// end.
type watcher struct {
	cmd  *exec.Cmd
	life *os.File
}

// keepWatch starts the watcher, unless there is one.
func (b *Broker) keepWatch() error {
	if b.o.Program == "" {
		return nil
	}
	b.watching.Lock()
	defer b.watching.Unlock()
	if b.watcher != nil {
		return nil
	}
	end, life, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start what ends the containers of a session that is killed: %w", err)
	}
	defer end.Close()
	cmd := exec.Command(b.o.Program, WatchArgument, b.o.Engine, b.o.Session.ID)
	cmd.Stdin, cmd.Dir, cmd.Env = end, "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what a terminal sends to the session is not for it
	if err := cmd.Start(); err != nil {
		life.Close()
		return fmt.Errorf("start what ends the containers of a session that is killed: %w", err)
	}
	b.watcher = &watcher{cmd, life}
	return nil
}

// relieve ends the watcher if no container is left. Otherwise the watcher keeps trying,
// since the engine may come back.
func (b *Broker) relieve(clean bool) {
	b.watching.Lock()
	defer b.watching.Unlock()
	if b.watcher == nil {
		return
	}
	if clean {
		_, _ = b.watcher.life.WriteString(".") // it may have been killed
	}
	b.watcher.life.Close()
	if clean {
		_ = b.watcher.cmd.Wait()
	}
	b.watcher = nil
}

// How a watcher goes about it: an engine may still be making what it was asked
// for, and one that does not answer is asked again.
const (
	watchRounds = 3
	watchPause  = time.Second
	watchTime   = 10 * time.Minute
)

// Watch is the main function of a watcher process and returns its exit code.
// args are the engine's socket and the session's ID. Watch reads life. At its end the
// broker is gone, and Watch removes the containers. A byte means that nothing has to be
// removed.
func Watch(args []string, life io.Reader) int {
	if len(args) != 2 || !sessionForm().MatchString(args[1]) {
		return 2
	}
	if n, _ := life.Read(make([]byte, 1)); n > 0 {
		return 0
	}
	e := newEngine(args[0])
	ours := func(l map[string]string) bool { return oneOf(l[maker.LabelRole], RoleChild, RoleHolder) }
	for last, done := time.Now().Add(watchTime), 0; done < watchRounds; time.Sleep(watchPause) {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		err := removeAll(ctx, e, []string{maker.LabelSession + "=" + args[1]}, ours)
		cancel()
		e.client.CloseIdleConnections()
		switch {
		case err == nil:
			done++
		case time.Now().After(last):
			return 1
		}
	}
	return 0
}
