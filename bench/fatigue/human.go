package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/places"
)

// A question is one that the human was asked.
type question struct {
	ID        string   `json:"id"`
	State     string   `json:"state"`
	Kind      string   `json:"kind"`
	Operation string   `json:"operation"`
	Resource  string   `json:"resource"`
	Args      []string `json:"args"`
	Canonical string   `json:"canonical"`
	Rule      string   `json:"rule"`
	Reason    string   `json:"reason"`
	yes       bool
}

// String is what patterns of tasks match: what would be done.
func (q question) String() string {
	return strings.Join(append([]string{q.Kind, q.Operation, cmp.Or(q.Canonical, q.Resource)}, q.Args...), " ")
}

// A human answers whatever a relay asks: yes to what the task needs, no to all else.
type human struct {
	y     *account
	task  *task
	relay *exec.Cmd
	watch *exec.Cmd
	done  sync.WaitGroup
	mu    sync.Mutex
	asked []question
	errs  []string
}

// newHuman starts a relay and watches it.
func newHuman(y *account, t *task) (*human, error) {
	h := &human{y: y, task: t, relay: y.cmd(context.Background(), y.bawn, "serve")}
	if err := h.relay.Start(); err != nil {
		return nil, err
	}
	if err := until(func() bool { return !absent(filepath.Join(y.home, ".local/state/bawn/run", places.APISocket+".key")) }); err != nil {
		return nil, fmt.Errorf("the relay does not serve: %w", err)
	}
	h.watch = y.cmd(context.Background(), y.bawn, "approvals", "--watch", "--json")
	out, err := h.watch.StdoutPipe()
	if err == nil {
		err = h.watch.Start()
	}
	if err != nil {
		return nil, err
	}
	h.done.Go(func() { h.answers(out) })
	return h, nil
}

// answers answers each question once.
func (h *human) answers(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var q question
		if json.Unmarshal(lines.Bytes(), &q) != nil || q.State != "pending" || slices.ContainsFunc(h.asked, func(old question) bool { return old.ID == q.ID }) {
			continue
		}
		q.yes = h.task.deserves(q)
		words := []string{h.y.bawn, "deny", q.ID, "--why", "that is no part of the task"}
		if q.yes {
			words = []string{h.y.bawn, "approve", q.ID}
		}
		if q.Kind == bawn.Network.String() && len(q.Args) == 0 { // as a plain y at a terminal is
			words = append(words, "--session")
		}
		said, err := h.y.cmd(context.Background(), words...).CombinedOutput()
		h.mu.Lock()
		h.asked = append(h.asked, q)
		if err != nil {
			h.errs = append(h.errs, fmt.Sprintf("%v: %v: %s", q, err, said))
		}
		h.mu.Unlock()
	}
}

// leave ends the relay and returns what was asked.
func (h *human) leave() []question {
	_ = h.relay.Process.Signal(syscall.SIGTERM)
	_ = h.relay.Wait() // by the signal
	_ = h.watch.Process.Signal(syscall.SIGTERM)
	h.done.Wait()
	_ = h.watch.Wait()
	return h.asked
}
