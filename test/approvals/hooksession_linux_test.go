package approvals_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHookAnswersForTheSession answers an unsandboxed agent's hook for its session: each
// call is a process of its own, and the same action is not asked about again. What
// is not the same is.
func TestHookAnswersForTheSession(t *testing.T) {
	r := newAccount(t)
	r.relay()
	file := filepath.Join(r.Home, "a.go")
	write := r.told("Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, file))
	r.answered("approve", "claude", write, file, "--session")
	kept := filepath.Join(r.Home, ".local/state/bawn/hook-answers")
	files, err := os.ReadDir(kept)
	check(t, err)
	if len(files) != 1 {
		t.Fatalf("%d answers are kept", len(files))
	}
	if info, err := files[0].Info(); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	told := 0
	again := func(when string) {
		t.Helper()
		r.hook("60s", strings.NewReader(write)).answers(true)
		told++
		if _, out, _ := r.run("bawn", "audit", "query", "--json"); strings.Count(out, "earlier in the agent's session") != told {
			t.Errorf("%s: the log says %s", when, out)
		}
	}
	again("at once")

	// The control: another session, another file, another agent.
	r.answered("approve", "claude", strings.Replace(write, `"session_id":"s"`, `"session_id":"t"`, 1), file)
	r.answered("approve", "claude", strings.Replace(write, "a.go", "b.go", 1), filepath.Join(r.Home, "b.go"))
	r.answered("approve", "codex", write, file)

	// A copy under another name, and one that others could have written.
	name := filepath.Join(kept, files[0].Name())
	check(t, os.Chmod(name, 0o644))
	r.answered("approve", "claude", write, file)
	check(t, os.Chmod(name, 0o600))
	again("closed again")

	// A policy that says something else about it.
	policy := filepath.Join(r.Home, ".config/bawn/policy.toml")
	check(t, os.MkdirAll(filepath.Dir(policy), 0o700))
	rule := "[[rule]]\nid = \"mine\"\nkind = \"filesystem\"\npattern = \"" + file + "\"\nverdict = %q\nreason = \"mine\"\n"
	check(t, os.WriteFile(policy, fmt.Appendf(nil, rule, "ask"), 0o600))
	r.answered("approve", "claude", write, file)
	check(t, os.WriteFile(policy, fmt.Appendf(nil, rule, "deny"), 0o600))
	r.hook("60s", strings.NewReader(write)).answers(false)
	check(t, os.Remove(policy))
	again("as it was")

	// A no holds as well.
	other := strings.Replace(write, "a.go", "c.go", 1)
	r.answered("deny", "claude", other, filepath.Join(r.Home, "c.go"), "--session")
	r.hook("60s", strings.NewReader(other)).answers(false)
}

// answered is a call of a hook that asks, and is answered so.
func (r *account) answered(how, agent, message, resource string, flags ...string) {
	r.t.Helper()
	h := r.hookOf(agent, "60s", strings.NewReader(message))
	r.answer(append([]string{"bawn", how, r.pending(resource).ID}, flags...)...)
	<-h.done
	if text := h.out.String(); strings.Contains(text, "deny") != (how == "deny") {
		r.t.Errorf("%s: %s", how, text)
	}
}
