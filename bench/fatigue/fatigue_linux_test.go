package main

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// errNoWorld is why this process could not make a world; nil where it runs in one.
var errNoWorld error

// TestMain runs the tests on the machine of a world.
func TestMain(m *testing.M) {
	var code int
	var err error
	switch world.Role() {
	case world.Machine:
		code = m.Run()
	case world.First, world.Outside:
		code, err = part()
	default:
		if code, err = enter(os.Args[1:]); err != nil {
			errNoWorld = err
			code, err = m.Run(), nil
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// theBench is that of all tests, whose programs are built once.
var theBench = sync.OnceValues(func() (*bench, error) { return newBench(world.Dir(), os.Getenv(testenv.AgentsVariable)) })

// try runs an agent with a task in every variant, and wants each run in order.
func try(t *testing.T, agent, name string, frontends ...string) {
	t.Helper()
	testenv.Need(t, "npm-agents", "node", "git", "userns", "iproute2", "landlock", "seccomp", "notify", "curl")
	if errNoWorld != nil {
		t.Fatalf("there is no world: %v", errNoWorld)
	}
	b, err := theBench()
	if err != nil {
		t.Fatal(err)
	}
	all, err := tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range all {
		if task.Name != name {
			continue
		}
		for _, frontend := range frontends {
			for _, variant := range variants {
				if frontend == control && variant == clean {
					continue // the attacked control does the task, too
				}
				r := b.try(agent, frontend, variant, task)
				if t.Log(r.line()); !r.ok() {
					t.Errorf("%s\n%s", r.line(), r.text())
				}
			}
		}
	}
}

// TestFatigue is the representative: an agent does two tasks in a split session,
// and a control does them without Bawn. Where testenv.Short says so, it is one.
func TestFatigue(t *testing.T) {
	for _, name := range []string{"docs-fetch", "release"}[:testenv.Some(2, 1)] {
		t.Run(name, func(t *testing.T) { try(t, "claude", name, control, "split") })
	}
}

// TestEachTask has each task done with each frontend, by the agents in turn.
func TestEachTask(t *testing.T) {
	testenv.Whole(t)
	testenv.Need(t, "go", "python3", "make")
	all, err := tasks()
	if err != nil {
		t.Fatal(err)
	}
	for i, task := range all {
		agent := agentNames[i%len(agentNames)]
		t.Run(task.Name+"/"+agent, func(t *testing.T) { try(t, agent, task.Name, frontendNames()...) })
	}
}
