package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy/importer"
	"github.com/bawn-dev/bawn/internal/policycli"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// imports runs the command and returns both outputs and the exit code.
func (h configHome) imports(args ...string) (stdout, stderr string, code int) {
	h.Helper()
	return h.streams(policycli.NewPolicyImport, args...)
}

// streams runs a command with its outputs apart.
func (h configHome) streams(build func(*launch.Env) *cobra.Command, args ...string) (stdout, stderr string, code int) {
	h.Helper()
	var out, errs strings.Builder
	c := build(h.env())
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&errs)
	var ce *verb.Error
	if err := c.Execute(); errors.As(err, &ce) {
		code = ce.Code
	} else if err != nil {
		h.Fatal(err)
	}
	return out.String(), errs.String(), code
}

func TestPolicyImport(t *testing.T) {
	h := newConfigHome(t)
	whole := h.put("ws/.claude/settings.json", `{"permissions":{"allow":["Bash(git status:*)"],"deny":["Read(./.env)"],"additionalDirectories":["/srv/x"]}}`)
	out, errs, code := h.imports(whole)
	if code != 0 || errs != "" || !strings.Contains(out, `pattern = "git status *"`) || !strings.Contains(out, `#   isolation.rw = ["/srv/x"]`) {
		t.Errorf("%d, %q\n%s", code, errs, out)
	}
	policy := h.put("ws/out/policy.toml", out)
	if got := h.must(policycli.NewPolicyCheck, policy); !strings.Contains(got, "2 rules, in order") {
		t.Errorf("check: %s", got)
	}
	part := h.put("ws/part.json", "{\n\"permissions\":{\"allow\":[\n\"Bash(bash -c:*)\",\"Bash(make all)\"]}}")
	out, errs, code = h.imports("part.json")
	if want := "part.json:3: allow Bash(bash -c:*): \"bash\" runs what it is given"; code != 1 || !strings.HasPrefix(errs, want) || !strings.Contains(out, `"make all"`) {
		t.Errorf("%d, %q\n%s", code, errs, out)
	}
	var report struct {
		Rules []struct{ Pattern string }
		Left  []struct {
			File, Item, Why string
			Line            int
		}
	}
	out, _, code = h.imports("--json", "--from", "claude", part)
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 1 || len(report.Rules) != 1 || len(report.Left) != 1 || report.Left[0].Line != 3 {
		t.Errorf("%d, %v, %+v", code, err, report)
	}
}

// TestPolicyImportUnreadable: one bad file, and nothing is written.
func TestPolicyImportUnreadable(t *testing.T) {
	h := newConfigHome(t)
	h.put("ws/good.json", `{"permissions":{"allow":["Bash(make all)"]}}`)
	h.put("ws/bad.json", "{\n\"permissions\":\n}")
	h.put("ws/other.json", "{}")
	if out, _, code := h.imports("good.json"); code != 0 || out == "" {
		t.Errorf("control: %d", code)
	}
	if out, _, code := h.imports("good.json", "bad.json"); code != verb.ExitUsage || out != "" {
		t.Errorf("%d, %q", code, out)
	}
	h.fails(policycli.NewPolicyImport, "other.json:1: it is not clear whose file", "--help", "other.json")
	h.fails(policycli.NewPolicyImport, "bad.json:3: ", "nothing was imported", "--from", "claude", "bad.json")
	h.fails(policycli.NewPolicyImport, "no such file", "", "absent.json")
	h.fails(policycli.NewPolicyImport, "--from \"x\"", "", "--from", "x", "good.json")
}

// TestPolicyImportUserFile: in the user's own file "/x" is not the project's.
func TestPolicyImportUserFile(t *testing.T) {
	h := newConfigHome(t)
	const text = `{"permissions":{"deny":["Read(/x/**)"]}}`
	if _, errs, code := h.imports(h.put(".claude/settings.json", text)); code != 1 || !strings.Contains(errs, "in a user's file") {
		t.Errorf("%d, %q", code, errs)
	}
	if out, errs, code := h.imports(h.put("ws/.claude/settings.json", text)); code != 0 || !strings.Contains(out, `"x/**"`) {
		t.Errorf("control: %d, %q", code, errs)
	}
}

// TestPolicyImportConfig: the settings are a configuration that loads.
func TestPolicyImportConfig(t *testing.T) {
	h := newConfigHome(t)
	for _, name := range []string{"codex.toml", "cadre.config.json", "cadre-host.json"} {
		data, err := os.ReadFile(filepath.Join("../policy/importer/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		out, _, code := h.imports("--config", h.put("ws/"+name, string(data)))
		if code != 1 || !strings.Contains(out, "isolation.") {
			t.Fatalf("%s: %d, %s", name, code, out)
		}
		h.put(".config/bawn/config.toml", out)
		h.must(newConfigCommand, "show")
	}
}

// TestCadreBecomesASession: what a Cadre file says is what a session gets, and a
// flag counts more.
func TestCadreBecomesASession(t *testing.T) {
	h := newConfigHome(t)
	data, err := os.ReadFile("../policy/importer/testdata/cadre.config.json")
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := h.imports("--config", h.put("ws/cadre.config.json", string(data)))
	h.put(".config/bawn/config.toml", out)
	load := func(f config.Flags) *config.Config {
		in, err := settings.ConfigInputs(&h.env().World, h.workspace, f)
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(in)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, flag := load(config.Flags{}), "native"
	iso := c.Isolation(h.workspace)
	if c.Provider != "docker" || c.FallbackToHost() || c.Profile != "hardened" || c.Docker().Image != "node:20-slim" || len(c.Docker().ExtraArgs) != 3 || len(c.Docker().AllowArgs) != 0 {
		t.Errorf("%+v, %+v", c, c.Docker())
	}
	if iso.Network != bawn.NetworkNone || iso.Resources.MemoryMB != 2048 || iso.Resources.OpenFiles != 1024 || iso.Resources.Timeout.Milliseconds() != 1800500 || iso.Resources.PIDs == 0 {
		t.Errorf("%+v", iso)
	}
	if got := load(config.Flags{Provider: &flag}).Provider; got != "native" {
		t.Errorf("--provider native: %q", got)
	}
}

// FuzzCadreLoads: whatever a Cadre file says, what is made of it is a
// configuration, so that nobody is left with one that can't be read. Only what
// this machine has can still be in the way.
func FuzzCadreLoads(f *testing.F) {
	for _, name := range []string{"cadre.config.json", "cadre-host.json"} {
		data, err := os.ReadFile(filepath.Join("../policy/importer/testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(`{"policies":{"strict":{"networkAllowlist":["a.b:1"],"mounts":[{"path":"/a//b/./c"}]},"9-":{"envAllowlist":["A*"]}},"dockerOptions":{"image":"A:b","extraArgs":["-h","\u0085","--label","x"]}}`)
	dir := f.TempDir()
	in := config.Inputs{Workspace: filepath.Join(dir, "ws"), Home: dir, ManagedPath: filepath.Join(dir, "none"), Machine: config.Machine{MemoryMB: 1024}}
	if err := os.Mkdir(in.Workspace, 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data string) {
		im, err := importer.Read("cadre", "c.json", []byte(data), true)
		if err != nil {
			return
		}
		res, err := importer.Merge([]*importer.Import{im})
		if err != nil {
			t.Fatal(err)
		}
		in := in
		in.UserPath = filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(in.UserPath, []byte(res.Config()), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(in)
		if err != nil && !strings.Contains(err.Error(), "Bawn's own state") {
			t.Fatalf("%v\n%s", err, res.Config())
		}
		if err == nil && (c.FallbackToHost() || c.Provider == config.HostProvider || len(c.Docker().AllowArgs) > 0) {
			t.Fatalf("an import opens the host:\n%s", res.Config())
		}
	})
}

// TestPolicyImportShowsControlCharacters: what a file says can't move the
// cursor or write a line of its own.
func TestPolicyImportShowsControlCharacters(t *testing.T) {
	h := newConfigHome(t)
	_, errs, code := h.imports(h.put("ws/s.json", `{"permissions":{"allow":["Bash(\u001b[2Jx\ns.json:9: fine)"]}}`))
	if code != 1 || strings.ContainsRune(errs, 0x1b) || strings.Count(errs, "\n") != 1 {
		t.Errorf("%d, %q", code, errs)
	}
}
