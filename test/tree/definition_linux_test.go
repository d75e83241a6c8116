package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDefinition: a definition file of a guest's narrows what the guest's child
// has and widens nothing, and its errors tell of no file that the guest does
// not see.
func TestDefinition(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	none := []string{"--net", "none"}
	write := "echo x >" + r.other + "/wide 2>/dev/null && echo yes || echo no"
	r.put(t, "wide.toml", "mode = \"permissive\"\n[isolation]\nnetwork = \"full\"\nrw = [\""+r.other+"\"]\n")
	said(t, "control: by the human's flag", r.Run(t, r.bawn([]string{"--net", "none", "--rw", r.other}, "/bin/sh", "-c", write)...), true)
	check(t, os.Remove(filepath.Join(r.other, "wide")))
	said(t, "by a definition", r.child(t, none, []string{"-q", "--as", "wide.toml"}, write), false)
	if exists(filepath.Join(r.other, "wide")) {
		t.Error("a child has written where its parent does not")
	}
	touch := "echo x >made 2>/dev/null && echo yes || echo no"
	r.put(t, "narrow.toml", "[isolation]\nprotected = [\"made\"]\n")
	said(t, "control: without a definition", r.child(t, none, []string{"-q"}, touch), true)
	check(t, os.Remove(filepath.Join(r.Work, "made")))
	said(t, "narrower", r.child(t, none, []string{"-q", "--as", "narrow.toml"}, touch), false)

	r.put(t, "hidden/secret.toml", "canary_of_a_file = 1\n")
	check(t, os.Symlink("hidden/secret.toml", filepath.Join(r.Work, "link.toml")))
	check(t, os.Symlink("hidden", filepath.Join(r.Work, "dir")))
	outside := filepath.Join(r.other, "secret.toml")
	check(t, os.WriteFile(outside, []byte("canary_of_a_file = 1\n"), 0o644))
	check(t, os.Symlink(outside, filepath.Join(r.Work, "out.toml")))
	if got := r.child(t, none, []string{"--as", "hidden/secret.toml"}, "true"); !strings.Contains(got.Err, "canary_of_a_file") {
		t.Errorf("control: the error of a file that is seen: %+v", got)
	}
	deny := append(none, "--deny", filepath.Join(r.Work, "hidden"))
	for _, name := range []string{"hidden/secret.toml", "link.toml", "dir/secret.toml", "out.toml", outside, "hidden/../hidden/secret.toml", "hidden/none.toml"} {
		got := r.child(t, deny, []string{"--as", name}, "echo ran")
		if got.Code == 0 || strings.Contains(got.Out+got.Err, "canary") || strings.Contains(got.Out, "ran") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestOwnThroughAShell: what an agent asks its shell to ask is asked at its own
// session socket; in a line with anything else it is a command like any other.
func TestOwnThroughAShell(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.Rule(t, "allow", "command", "true *")
	in := func(line string) result {
		return r.agent(t, []string{"--net", "none", "--mode", "permissive"}, "env", "sh", "-c", line)
	}
	if got := in("bawn request --allow a.test 2>&1"); got.Code != 126 || !strings.Contains(got.Out, "no host can be opened") {
		t.Errorf("it did not reach the session socket: %+v", got)
	}
	if got := in("bawn run -q -- echo yes"); got.Out != "yes\n" {
		t.Errorf("a session below: %+v", got)
	}
	r.Rule(t, "deny", "command", "bawn *") // what reaches the policy ends there
	if got := in("bawn request --allow a.test; true x"); strings.Contains(got.Out+got.Err, "no host can be opened") {
		t.Errorf("control: with another command: %+v", got)
	}
	r.Rule(t, "deny", "command", "touch *")
	if got := in("bawn run -q -- touch made"); got.Code == 0 || exists(filepath.Join(r.Work, "made")) {
		t.Errorf("what the policy denies: %+v", got)
	}
}
