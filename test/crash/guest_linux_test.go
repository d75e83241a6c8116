package crash_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// effectsName is the directory of the workspace in which commands leave what
// they do, and markWord the word by which they are known.
const (
	effectsName = "effects"
	markWord    = "mark"
)

// lanes is how many commands an agent runs at once.
const lanes = 2

func guest(role string, words []string) int {
	switch role {
	case "agent":
		return agent(words[0])
	case markWord:
		return mark(words[0])
	}
	fmt.Println("the guest does not know", role)
	return 2
}

// agent has commands executed, each once, and says how each ended, until its
// input ends.
func agent(name string) int {
	var stop atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end too
		stop.Store(true)
	}()
	self, err := os.Executable()
	if err != nil {
		return 3
	}
	var work sync.WaitGroup
	for lane := range lanes {
		work.Go(func() {
			for n := 0; !stop.Load(); n++ {
				id := fmt.Sprintf("%s-%d-%d", name, lane, n)
				err := exec.Command("/bin/sh", "-c", strings.Join([]string{self, testhome.GuestWord, markWord, id}, " ")).Run()
				code := 0
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					code = exit.ExitCode()
				} else if err != nil {
					code = -2
				}
				fmt.Printf("%s %d\n", id, code)
			}
		})
	}
	work.Wait()
	return 0
}

// mark does what can't be undone: one line more.
func mark(id string) int {
	name, _, _ := strings.Cut(id, "-")
	f, err := os.OpenFile(filepath.Join(effectsName, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s %d\n", id, time.Now().UnixNano())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
