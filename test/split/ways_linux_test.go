package split_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestShellsEverywhere: by whichever way an agent comes to a shell, the command
// runs in the other zone, where there is no session socket; what it starts without one
// stays in its own.
func TestShellsEverywhere(t *testing.T) {
	t.Parallel()
	r := newAccount(t, "python3", "node")
	text, err := json.Marshal([]string{"socket", "/run/bawn/session.sock"})
	check(t, err)
	file := filepath.Join(r.Work, "words")
	check(t, os.WriteFile(file, text, 0o600))
	line := r.line("from", file)
	link := filepath.Join(r.Work, "link")
	check(t, os.Symlink("/bin/sh", link))
	copied := filepath.Join(r.Work, "copied")
	shell, err := os.ReadFile("/bin/sh")
	check(t, err)
	check(t, os.WriteFile(copied, shell, 0o755))
	script := filepath.Join(r.Work, "script")
	check(t, os.WriteFile(script, []byte("#!/bin/sh\n"+line+"\n"), 0o755))
	python := func(code string) []string { return []string{"/usr/bin/python3", "-c", code} }
	for what, c := range map[string]struct {
		argv   []string
		inside bool // the agent's own zone
	}{
		"sh":                       {argv: []string{"/bin/sh", "-c", line}},
		"bash":                     {argv: []string{"/bin/bash", "-c", line}},
		"usr":                      {argv: []string{"/usr/bin/sh", "-c", line}},
		"env":                      {argv: []string{"/usr/bin/env", "bash", "-c", line}},
		"a link":                   {argv: []string{link, "-c", line}},
		"os.system":                {argv: python(fmt.Sprintf("import os; os.system(%q)", line))},
		"popen":                    {argv: python(fmt.Sprintf("import os; print(os.popen(%q).read())", line))},
		"another argv[0]":          {argv: python(fmt.Sprintf("import os; os.execv('/bin/sh', ['innocent', '-c', %q])", line))},
		"a script of its own":      {argv: python(fmt.Sprintf("import os; os.execv(%q, ['x'])", script))},
		"through /proc":            {argv: python(fmt.Sprintf("import os; os.execv('/proc/self/root/bin/sh', ['sh', '-c', %q])", line))},
		"child_process":            {argv: []string{"node", "-e", fmt.Sprintf("require('child_process').exec(%q, (e, out) => console.log(out))", line)}},
		"without a shell":          {argv: python(fmt.Sprintf("import subprocess; subprocess.run(%q.split())", line)), inside: true},
		"a shell that was brought": {argv: []string{copied, "-c", line}, inside: true}, // R41: with what the agent has, no more
	} {
		t.Run(what, func(t *testing.T) {
			argv := append([]string{filepath.Join(r.Bin, "bawn"), "run", "--split", "--mode", "permissive", "--"}, c.argv...)
			said(t, what, r.Run(t, argv...), c.inside)
		})
	}
}

// TestLauncher: an agent that a shell would interpret is refused, with what to
// do, and its sandboxes are not even made.
func TestLauncher(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	launcher := filepath.Join(r.Work, "agent")
	check(t, os.WriteFile(launcher, []byte("#!/bin/sh\nexec "+r.line("env")+"\n"), 0o755))
	got := r.Run(t, filepath.Join(r.Bin, "bawn"), "run", "--split", "--", launcher)
	if got.Code != 2 || got.Out != "" {
		t.Errorf("%+v", got)
	}
	if control := r.Run(t, filepath.Join(r.Bin, "bawn"), "run", "--", launcher); control.Code != 0 {
		t.Errorf("control: without --split: %+v", control)
	}
}
