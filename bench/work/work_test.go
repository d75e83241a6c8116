package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestTasks wants every task to be one that can run.
func TestTasks(t *testing.T) {
	seen := map[string]bool{}
	for _, task := range tasks {
		if seen[task.name] || fixtures[task.where] == nil || (task.argv == nil) == (task.do == nil) {
			t.Errorf("%+v: want a name of its own, a fixture, and either a program or a function", task.name)
		}
		seen[task.name] = true
		if got, err := find(task.name); err != nil || got.name != task.name {
			t.Errorf("find %q: %q, %v", task.name, got.name, err)
		}
	}
	if _, err := find("sleep"); err == nil {
		t.Error("an unknown task: no error")
	}
}

func TestRounds(t *testing.T) {
	o := &options{rounds: 20, cold: 3}
	for want, task := range map[int]task{20: {}, 3: {long: true}, 8: {most: 8}} {
		if got := task.rounds(o); got != want {
			t.Errorf("got %d rounds, want %d", got, want)
		}
	}
}

// TestFileTasks runs the tasks about files, twice: each must leave what the
// next round needs.
func TestFileTasks(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := workshop(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, task := range tasks {
			if task.do == nil {
				continue
			}
			if task.prepare != nil {
				if err := task.prepare(); err != nil {
					t.Fatalf("prepare %s: %v", task.name, err)
				}
			}
			if s, err := task.run(); err != nil || s.Wall <= 0 {
				t.Fatalf("%s: %+v, %v", task.name, s, err)
			}
		}
	}
	if _, err := os.Stat("links/000/file-00000.txt"); err == nil {
		t.Error("unlink left its files")
	}
	if old, err := os.ReadDir("old"); err != nil || len(old) != 1 {
		t.Errorf("%d earlier creations are set aside (%v), want 1", len(old), err)
	}
	if err := unlink(); err == nil {
		t.Error("unlink without files: no error")
	}
}

// TestModule wants the generated module to be one that can be built.
func TestModule(t *testing.T) {
	testenv.Need(t, "go")
	t.Chdir(t.TempDir())
	if err := module(); err != nil {
		t.Fatal(err)
	}
	for i := range packages {
		if _, err := parser.ParseFile(token.NewFileSet(), fmt.Sprintf("p%03d/p.go", i), nil, parser.AllErrors); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "list", "-deps", ".")
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	out, err := cmd.CombinedOutput()
	if n := strings.Count(string(out), "example.com/generated/p"); err != nil || n != packages {
		t.Errorf("%d packages, %v; want %d\n%s", n, err, packages, out)
	}
}
