//go:build linux || darwin

package runner

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func script(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestShells: every shell of the machine, by what its links lead to.
func TestShells(t *testing.T) {
	dir := t.TempDir()
	own := script(t, filepath.Join(dir, "zsh"), "")
	real, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "bash")
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	private := private
	defer func(p []string) { setPrivate(p) }(private)
	setPrivate(nil) // the test's own directory is in one
	found, err := Shells(dir, nil, "/none/fish", link)
	if err != nil || !slices.Contains(found, real) || !slices.Contains(found, own) || slices.Contains(found, link) || slices.Contains(found, "/bin/sh") && real != "/bin/sh" {
		t.Errorf("%q, %v", found, err)
	}
	for i, f := range found {
		if slices.Contains(found[i+1:], f) {
			t.Errorf("%q is found twice", f)
		}
	}
	if found, _ = Shells(dir, []string{dir}); slices.Contains(found, own) {
		t.Error("one was found in a place that was to be left out")
	}
	var multi *MultiCallError
	busybox := script(t, filepath.Join(dir, "busybox"), "")
	if found, err = Shells(dir, nil); err != nil || !slices.Contains(found, busybox) || !isShell(busybox) {
		t.Errorf("a program that is a shell among others: %q, %v", found, err)
	}
	sh := filepath.Join(dir, "sh")
	if err := os.Symlink(busybox, sh); err != nil {
		t.Fatal(err)
	}
	if _, err = Shells(dir, nil); !errors.As(err, &multi) || multi.Program != busybox {
		t.Errorf("got %v", err)
	}
}

func setPrivate(p []string) { private = p }

// TestCheckAgent: a launcher that a covered shell would interpret is found out,
// also behind env and another script, and no other program.
func TestCheckAgent(t *testing.T) {
	dir := t.TempDir()
	shell := script(t, filepath.Join(dir, "sh"), "\x7fELF")
	node := script(t, filepath.Join(dir, "node"), "\x7fELF")
	direct := script(t, filepath.Join(dir, "direct"), "#! "+shell+" -e\nx=1\n  exec node cli.js \"$@\"\n")
	for text, want := range map[string]bool{
		"#!" + shell + "\n": true, "#!/usr/bin/env sh\n": true, "#!/usr/bin/env -S A=b sh -e\n": true, "#!/usr/bin/env -Ssh -e\n": true, "#!" + direct + "\n": true,
		"#!" + node + "\n": false, "#!/usr/bin/env node\n": false, "\x7fELF #!" + shell: false, "": false, "#!/none/sh\n": false, "#!\n": false,
	} {
		var se *ScriptError
		err := CheckAgent(script(t, filepath.Join(dir, "agent"), text), dir, []string{shell})
		if errors.As(err, &se) != want {
			t.Errorf("%q: %v, want an error: %t", text, err, want)
		}
	}
	var se *ScriptError
	if err := CheckAgent(direct, dir, []string{shell}); !errors.As(err, &se) || !strings.HasPrefix(se.Starts, "exec node") {
		t.Errorf("got %v", err)
	}
	if err := CheckAgent(filepath.Join(dir, "none"), dir, []string{shell}); err != nil {
		t.Errorf("what is not there: %v", err)
	}
}

// TestCheckLauncher: npx and npm start a tool by a shell, and the tool of the project
// is named where there is one.
func TestCheckLauncher(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "node_modules/.bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	script(t, filepath.Join(dir, "node_modules/.bin/tool"), "")
	for line, want := range map[string]string{
		"npx tool a": "npx > node_modules/.bin/tool", "/usr/bin/npx --offline tool": "npx > node_modules/.bin/tool", "npx other": "npx > ", "npx ../x": "npx > ", "npx": "npx > ",
		"npm exec tool": "npm exec > node_modules/.bin/tool", "npm -s run tool": "npm run > node_modules/.bin/tool", "npm test": "npm test > ",
		"npm install tool": "", "npm": "", "npm --version": "", "node tool": "", "claude": "",
	} {
		got := ""
		var e *LauncherError
		if err := CheckLauncher(strings.Fields(line), dir); errors.As(err, &e) {
			got = e.Program + " > " + e.Starts
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
