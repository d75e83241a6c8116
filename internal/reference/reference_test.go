package reference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/relaycli"
)

// TestTree: what bawn hands to bawnd is there with its flags, and every command has
// what a page needs.
func TestTree(t *testing.T) {
	seen := map[string]int{}
	for _, s := range sections(Tree()) {
		for _, top := range s.commands {
			for _, c := range below(top) {
				seen[c.CommandPath()]++
				if c.Short == "" || (c.Example == "" && c.Runnable() && top.Name() != "completion") {
					t.Errorf("%q lacks a summary or an example", c.CommandPath())
				}
				if c.DisableFlagParsing {
					t.Errorf("%q is a command that another program has", c.CommandPath())
				}
			}
		}
	}
	for _, name := range append(relaycli.Verbs, "secret", "secret bind", "run", "policy test") {
		if seen["bawn "+name] != 1 {
			t.Errorf("bawn %s is there %d times, want once", name, seen["bawn "+name])
		}
	}
	if seen["bawn launch"] != 0 {
		t.Error("a hidden command is shown")
	}
}

// TestPages: a page of each kind holds what its source says.
func TestPages(t *testing.T) {
	pages, err := Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"commands.md":      "| `--host-port PORT` | port of this machine's loopback",
		"configuration.md": "| `isolation.provider` | \"\", \"native\"",
		"exit-codes.md":    "| 126 | denied",
		"agents.md":        "| Claude Code | `.claude/settings.local.json` | `~/.claude/settings.json` |",
		"events.md":        "| `timestamp` | time (RFC 3339) | yes |",
		"api.md":           "| `Watch` (a stream) | any caller | Watch sends all that is pending",
	} {
		if !strings.Contains(pages[name], want) {
			t.Errorf("%s lacks %q:\n%.3000s", name, want, pages[name])
		}
	}
}

func TestEventsNeedComments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "event.go")
	for text, want := range map[string]string{
		"package x\ntype Event struct {\n\tID string `json:\"id\"`\n}\n":        "has no comment",
		"package x\ntype Other struct {\n\tID string `json:\"id\"` // an ID\n}": "no type Event",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := events(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestServicesHaveRights(t *testing.T) {
	var b strings.Builder
	proto := "// S is a service.\nservice S {\n  // Get gets.\n  rpc Get(A) returns (stream B);\n}\n"
	if err := protoServices(&b, proto, map[string]string{"/bawn.v1.S/Get": "any caller"}); err != nil || !strings.Contains(b.String(), "| `Get` (a stream) | any caller | Get gets. |") {
		t.Errorf("%v:\n%s", err, b.String())
	}
	if err := protoServices(&b, proto, map[string]string{}); err == nil {
		t.Error("a method without a right is documented")
	}
}

func TestMan(t *testing.T) {
	dir := t.TempDir()
	if err := WriteMan(dir, "1.2.3", time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"bawn.1":        ".TP\n\\fBbawn\\-run\\fR(1)\n",
		"bawn-run.1":    ".TP\n\\fB\\-p, \\-\\-publish PORT\\fR\n",
		"bawn-secret.1": ".SS bawn secret bind\n",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), ".TH \"BAWN") || !strings.Contains(string(text), `"2026-07-01" "bawn 1.2.3"`) || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q:\n%.2000s", name, want, text)
		}
	}
}

func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		"a-b":                `a\-b`,
		`\x`:                 `\ex`,
		".TH\n'x'\nplain.\n": "\\&.TH\n\\&'x'\nplain.\n",
	} {
		if got := roff(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestUnits(t *testing.T) {
	dir := t.TempDir()
	if err := WriteUnits(dir, "/usr/bin/bawn"); err != nil {
		t.Fatal(err)
	}
	service, err := os.ReadFile(filepath.Join(dir, "bawn.service"))
	if err != nil {
		t.Fatal(err)
	}
	socket, err := os.ReadFile(filepath.Join(dir, "bawn.socket"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(service), "\nExecStart=/usr/bin/bawn serve\n") || !strings.HasPrefix(string(socket), "[Unit]\n") || strings.Contains(string(socket), "systemctl") {
		t.Errorf("%s\n%s", service, socket)
	}
}

func TestCompletions(t *testing.T) {
	dir := t.TempDir()
	if err := WriteCompletions(dir, dir, filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"bawn": "# bash completion", "_bawn": "#compdef bawn", "f/bawn.fish": "# fish completion for bawn"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %v: %.100s", name, err, text)
		}
	}
}
