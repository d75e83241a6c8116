package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// A bench has what all runs share.
type bench struct {
	dir   string // of the world
	runs  int
	noisy bool
}

// newBench builds the programs.
func newBench(dir, installed string) (*bench, error) {
	if err := os.Setenv(testenv.AgentsVariable, installed); err != nil {
		return nil, err
	}
	b := &bench{dir: dir}
	return b, testhome.Programs(b.bin(), "cmd/bawn", "cmd/bawnd", "cmd/bawn-egress", "test/agent/model")
}

func (b *bench) bin() string { return filepath.Join(b.dir, "bin") }

// try has an agent do a task once.
func (b *bench) try(agent, frontend, variant string, t *task) result {
	b.runs++
	r := result{Agent: agent, Frontend: frontend, Variant: variant, Task: t.Name}
	y := b.account(agent)
	begin := time.Now()
	if err := b.into(y, frontendOf(frontend), &r, t); err != nil {
		r.Failure = err.Error()
	}
	r.Seconds = time.Since(begin).Seconds()
	if err := testenv.RemoveAll(y.dir); err != nil {
		r.Failure += err.Error()
	}
	return r
}

// account is an empty one.
func (b *bench) account(agent string) *account {
	name := fmt.Sprintf("r%d", b.runs)
	dir := filepath.Join(b.dir, name)
	return &account{
		agent: clientOf(agent), dir: dir, home: filepath.Join(dir, "h"), work: filepath.Join(dir, "h/app"), bawn: filepath.Join(b.bin(), "bawn"),
		remote: filepath.Join(b.dir, "repos", name, "app.git"), origin: "https://" + forge + "/" + name + "/app.git", events: filepath.Join(b.dir, eventsName), noisy: b.noisy,
	}
}

// into does the run and fills the result in.
func (b *bench) into(y *account, f frontend, r *result, t *task) error {
	script, steps, err := t.script(r.Variant, y.work)
	if err != nil {
		return err
	}
	if err := y.furnish(t, r.Variant, filepath.Join(b.dir, registriesName)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := y.serve(ctx, filepath.Join(b.bin(), "model"), script); err != nil {
		return err
	}
	if info, err := os.Stat(y.events); err == nil {
		y.from = info.Size()
	}
	if f.hooks {
		words := fmt.Sprintf("%q init --user --yes --agent %s", y.bawn, y.agent.Name)
		if f.stay {
			words += " --no-sandbox"
		}
		if err := y.sh(words); err != nil {
			return err
		}
	}
	var h *human
	if f.guarded {
		if h, err = newHuman(y, t); err != nil {
			return err
		}
	}
	out, err := y.run(append(f.words(y), y.agent.CommandFor(t.Prompt, f.free)...))
	if h != nil {
		r.ask(h.leave(), t)
		r.Errors = append(r.Errors, h.errs...)
		r.judge(y, t)
	}
	r.measure(y, t, steps, out, err)
	return nil
}

// measure looks from outside at what has become of the task.
func (r *result) measure(y *account, t *task, steps int, out string, err error) {
	for _, turn := range y.told() {
		if turn.Tool != "" {
			r.Steps++
		}
	}
	if err != nil || !strings.Contains(out, lastWords) || r.Steps != steps {
		r.Errors = append(r.Errors, fmt.Sprintf("the agent ended with %v after %d of %d steps: %.2000s", err, r.Steps, steps, out))
	}
	r.Missing = y.missing(t.Complete)
	if r.Variant == attack {
		r.Planted, r.Poisoned = len(y.missing(t.Planted.Effects)) == 0, len(y.missing(t.Poisoned.Effects)) == 0
	}
	for _, turn := range y.told() {
		if turn.Result != "" {
			r.Told = append(r.Told, fmt.Sprintf("%d: %.300s", turn.Step, turn.Result))
		}
	}
}
