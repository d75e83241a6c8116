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
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// configHome is a user with a workspace, both the test's own.
type configHome struct {
	*testing.T
	home, workspace string
}

func newConfigHome(t *testing.T) configHome {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := configHome{t, home, filepath.Join(home, "ws")}
	if err := os.Mkdir(h.workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h configHome) put(name, content string) string {
	h.Helper()
	name = filepath.Join(h.home, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		h.Fatal(err)
	}
	return name
}

func (h configHome) env() *launch.Env {
	return &launch.Env{World: verb.World{Dir: h.workspace, Environ: []string{"HOME=" + h.home}}}
}

// run runs one command and returns what it wrote to its output.
func (h configHome) run(build func(*launch.Env) *cobra.Command, args ...string) (string, error) {
	h.Helper()
	out, err := os.CreateTemp(h.TempDir(), "out")
	if err != nil {
		h.Fatal(err)
	}
	defer out.Close()
	e := h.env()
	e.Stdout, e.Stderr = out, out
	c := build(e)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	c.SetOut(out)
	runErr := c.Execute()
	data, err := os.ReadFile(out.Name())
	if err != nil {
		h.Fatal(err)
	}
	return string(data), runErr
}

func (h configHome) must(build func(*launch.Env) *cobra.Command, args ...string) string {
	h.Helper()
	out, err := h.run(build, args...)
	if err != nil {
		h.Fatalf("%q: %v", args, err)
	}
	return out
}

// fails runs a command that must end with exit code 2, a message and a hint.
func (h configHome) fails(build func(*launch.Env) *cobra.Command, message, hint string, args ...string) {
	h.Helper()
	_, err := h.run(build, args...)
	var ce *verb.Error
	if !errors.As(err, &ce) || ce.Code != verb.ExitUsage || !strings.Contains(ce.Error(), message) || !strings.Contains(ce.Hint, hint) {
		h.Errorf("%q: %v (%+v); want exit code 2, %q, hint %q", args, err, ce, message, hint)
	}
}

func TestConfigShow(t *testing.T) {
	h := newConfigHome(t)
	user := h.put(".config/bawn/config.toml", "mode = 'safe'\n[isolation]\nrw = ['/data']\n")
	out := h.must(newConfigCommand, "show")
	for _, want := range []string{"mode = \"safe\"\n", "isolation.network = \"allowlist\"\n", "isolation.rw = [\n  \"/data\",\n]\n", "isolation.resources.timeout = \"12h\"\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "#") {
		t.Errorf("origins without --origin:\n%s", out)
	}
	withOrigin := h.must(newConfigCommand, "show", "--origin")
	for _, want := range []string{`mode = "safe"  # ` + user + ":1:1\n", `autonomy = "moderate"  # ` + user + ":1:1, mode\n", `  "/data",  # ` + user + ":3:7\n", `isolation.network = "allowlist"  # built-in` + "\n"} {
		if !strings.Contains(withOrigin, want) {
			t.Errorf("%q is not in\n%s", want, withOrigin)
		}
	}
	// What show prints is a configuration that means the same.
	for _, text := range []string{out, withOrigin} {
		h.put(".config/bawn/config.toml", text)
		if again := h.must(newConfigCommand, "show"); again != out {
			t.Errorf("read again it is\n%s\nwas\n%s", again, out)
		}
	}
}

func TestConfigShowJSON(t *testing.T) {
	h := newConfigHome(t)
	user := h.put(".config/bawn/config.toml", "[isolation]\nrw = ['/data']\n")
	var got struct{ Values []map[string]any }
	if err := json.Unmarshal([]byte(h.must(newConfigCommand, "show", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	for _, v := range got.Values {
		if v["key"] == "isolation.rw" {
			if v["value"] != "/data" || v["layer"] != "user" || v["file"] != user || v["line"] != 2.0 || v["column"] != 7.0 || v["entry"] != true {
				t.Errorf("%v", v)
			}
			return
		}
	}
	t.Errorf("no isolation.rw in %v", got)
}

func TestConfigErrorsHaveCodeAndHint(t *testing.T) {
	h := newConfigHome(t)
	user := h.put(".config/bawn/config.toml", "netwrok = 'none'\n")
	h.fails(newConfigCommand, user+`:1:1: unknown key "netwrok"`, `did you mean "isolation.network"`, "show")
	h.fails(newConfigCommand, user+":1:1: unknown key", "did you mean", "check")
	h.put(".config/bawn/config.toml", "isolation.devices = ['/dev/kvm']\n")
	h.fails(newConfigCommand, "is no name below /dev", "bawn config --help", "check")
	h.put(".config/bawn/config.toml", "")
	project := h.put("ws/.bawn/config.toml", "[isolation]\nnetwork = 'full'\n")
	h.fails(newConfigCommand, project+`:2:1: would widen isolation.network from "allowlist" to "full"`, "bawn trust", "check")

	e := h.env()
	e.Environ = nil
	if _, err := settings.LoadConfig(&e.World, h.workspace, config.Flags{}); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("without HOME: %v", err)
	}
	if _, err := settings.LoadConfig(&h.env().World, h.home+"/absent", config.Flags{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no workspace: %v", err)
	}
}

func TestLoadConfigTakesFlags(t *testing.T) {
	h := newConfigHome(t)
	net := "full"
	c, err := settings.LoadConfig(&h.env().World, h.workspace, config.Flags{Net: &net})
	if err != nil {
		t.Fatal(err)
	}
	if iso := c.Isolation(h.workspace); iso.Network != bawn.NetworkFull || iso.Resources.MemoryMB <= 0 {
		t.Errorf("%+v", iso)
	}
}

func TestConfigCheckFile(t *testing.T) {
	h := newConfigHome(t)
	good, bad := h.put("good.toml", "mode = 'plan'\n"), h.put("bad.toml", "mode = 'x'\n")
	if out := h.must(newConfigCommand, "check", good); out != "the configuration is valid\n" {
		t.Errorf("%q", out)
	}
	h.must(newConfigCommand, "check", "../good.toml")
	h.must(newConfigCommand, "check")
	h.fails(newConfigCommand, bad+":1:8", "", "check", bad)
	h.fails(newConfigCommand, "no such file", "exists", "check", "absent.toml")
	other := h.put("other/.bawn/config.toml", "isolation.network = 'full'\n")
	h.fails(newConfigCommand, other+":1:", "bawn trust", "check", other)
}

func TestConfigSchemaAndPath(t *testing.T) {
	h := newConfigHome(t)
	if out := h.must(newConfigCommand, "schema"); out != string(config.Schema()) {
		t.Errorf("schema: %.100s", out)
	}
	user := h.put(".config/bawn/config.toml", "")
	out := h.must(newConfigCommand, "path")
	for _, want := range []string{"managed  " + config.ManagedFile, "user     " + user + "\n", "project  " + h.workspace + "/.bawn/config.toml (missing)\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %q", want, out)
		}
	}
}

func TestConfigInit(t *testing.T) {
	h := newConfigHome(t)
	path := strings.TrimSpace(h.must(newConfigCommand, "init"))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || path != filepath.Join(h.home, ".config/bawn/config.toml") {
		t.Errorf("%s: %v, %v", path, info, err)
	}
	h.must(newConfigCommand, "check")
	h.put(".config/bawn/config.toml", "mode = 'plan'\n")
	h.fails(newConfigCommand, "exists already", "move it away", "init")
	if data, err := os.ReadFile(path); err != nil || string(data) != "mode = 'plan'\n" {
		t.Errorf("init changed a file: %q, %v", data, err)
	}
}

func TestConfigCommandsHaveExamples(t *testing.T) {
	e := newConfigHome(t).env()
	for _, c := range append(newConfigCommand(e).Commands(), newConfigCommand(e), newTrustCommand(e)) {
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s has no example or no summary", c.Name())
		}
	}
	h := newConfigHome(t)
	if out := h.must(newConfigCommand); !strings.Contains(out, "show") {
		t.Errorf("config without a verb: %q", out)
	}
}
