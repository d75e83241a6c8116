package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configure writes the configuration of the account's user.
func (r *account) configure(t *testing.T, text string) {
	t.Helper()
	at := filepath.Join(r.Home, ".config/bawn/config.toml")
	check(t, os.MkdirAll(filepath.Dir(at), 0o700))
	check(t, os.WriteFile(at, []byte(text), 0o600))
}

// outside is a line that only a process of the host's can carry out.
func outside(r *account) string { return attempt("touch " + r.other + "/made") }

// TestChildChoosesNoHost: a guest gets no session outside of its sandbox, by no
// name and no file, whatever its human's configuration permits to themselves.
func TestChildChoosesNoHost(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	sandboxed := []string{"--net", "none", "--provider", "native"}
	for what, text := range map[string]string{
		"permitted as the last resort": "[isolation]\nallow_fallback_to_host = true\n",
		"the human's own choice":       "[isolation]\nprovider = \"host\"\n",
	} {
		r.configure(t, text)
		if strings.Contains(text, "provider") {
			said(t, what+", control: the human", r.sh(t, nil, outside(r)), true)
			check(t, os.Remove(filepath.Join(r.other, "made")))
		}
		r.put(t, "wide.toml", "[isolation]\nprovider = \"host\"\n")
		for how, flags := range map[string][]string{
			"asking for nothing": nil, "by name": {"--provider", "host"}, "by a file": {"--as", "wide.toml"},
			"as what nobody can do": {"--provider", "landlock", "--net", "allowlist"}, "as another that can't": {"--provider", "gvisor"}, "as one of bawnd's": {"--provider", "docker"},
		} {
			if got := r.child(t, sandboxed, flags, outside(r)); strings.Contains(got.Out, "yes") || exists(filepath.Join(r.other, "made")) {
				t.Errorf("%s, %s: a guest writes on the host: %+v", what, how, got)
				_ = os.Remove(filepath.Join(r.other, "made"))
			}
		}
		check(t, os.RemoveAll(filepath.Join(r.Work, ".bawn")))
	}
}

// TestGuestOfTheHostStartsNothing: what runs without a sandbox has no session socket, and
// is no human.
func TestGuestOfTheHostStartsNothing(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.configure(t, "[isolation]\nprovider = \"host\"\n")
	if got := r.child(t, nil, []string{"--provider", "native", "--net", "none"}, "echo ran"); got.Code != 126 || strings.Contains(got.Out, "ran") {
		t.Errorf("%+v; want it denied", got)
	}
}

// TestOtherProvider: sessions in sessions, and split ones, with a provider that
// another program makes.
func TestOtherProvider(t *testing.T) {
	t.Parallel()
	r := newAccount(t, "bwrap")
	bwrap := []string{"-q", "--net", "none", "--provider", "bwrap"}
	said(t, "control: outside", r.sh(t, append(bwrap, "--rw", r.other), outside(r)), true)
	check(t, os.Remove(filepath.Join(r.other, "made")))
	if got := r.child(t, bwrap, nil, "echo child; exit 3"); got.Out != "child\n" || got.Code != 3 {
		t.Errorf("a child: %+v", got)
	}
	said(t, "a child that asks for more", r.child(t, bwrap, []string{"--rw", r.other}, outside(r)), false)
	said(t, "a child on a weaker provider", r.child(t, bwrap, []string{"--provider", "landlock"}, attempt("test $(ls -d /proc/[0-9]* | wc -l) -gt 20")), false)
	if got := r.agent(t, bwrap, r.Guest("variable", "OPENAI_API_KEY")...); !strings.Contains(got.Out, "yes") {
		t.Errorf("control: the agent has its key: %+v", got)
	}
	r.Rule(t, "allow", "command", filepath.Join(r.Bin, "guest")+" *")
	said(t, "its commands", r.agent(t, bwrap, "/bin/sh", "-c", strings.Join(r.Guest("variable", "OPENAI_API_KEY"), " ")), false)
	if got := r.agent(t, bwrap, "/bin/sh", "-c", "echo ran >said"); got.Code != 0 || !exists(filepath.Join(r.Work, "said")) {
		t.Errorf("its commands: %+v; want them to run", got)
	}
}
