package config

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"
)

// TestBadInput: where it stands, what was wanted, what is
// nearest.
func TestBadInput(t *testing.T) {
	for _, c := range []struct{ in, where, want, hint string }{
		{"mode = ", "1:7", "expected value, not end of input", "TOML 1.0"},
		{"mode = 'a", "1:9", "unterminated literal string", ""},
		{"mode = 'safe'\nmode = 'plan'", "2:1", "key mode is already defined", ""},
		{"[isolation]\n[isolation]", "2:2", "table isolation already exists", ""},
		{"isolation.network='none'\n[isolation]\nnetwork='full'", "2:2", "already exists", ""},
		{"x = {a = 1, \"\\u001b[2J\" = 2}", "1:1", `unknown table "x"`, ""},
		{"[isolation]\n[\"\\u001b[2J\"]", "2:2", `unknown table "\x1b[2J"`, ""},
		{"[profiles.x]\nrw=[]\n\"rw\"=[]", "3:1", `key rw is already defined`, ""},
		{"\xef\xbb\xbfmode='plan'", "1:1", "byte order mark", "without BOM"},
		{"mode = 'plan'\n# \x00", "2:3", "NUL byte", ""},
		{"# ok\n# \xff", "2:3", "not UTF-8", ""},

		{"mdoe = 'plan'", "1:1", `unknown key "mdoe"`, `did you mean "mode"`},
		{"network = 'none'", "1:1", `unknown key "network"`, `did you mean "isolation.network"`},
		{"[isolation]\nnetwrok = 'none'", "2:1", `unknown key "isolation.netwrok"`, `did you mean "isolation.network"`},
		{"[isolation]\nmemory_mb = 1", "2:1", `unknown key "isolation.memory_mb"`, `did you mean "isolation.resources.memory_mb"`},
		{"[isolation]\nPolicy-Profile = 'default'", "2:1", "unknown key", `did you mean "isolation.policy_profile"`},
		{"isolation.\"network.x\" = 1", "1:11", `unknown key "isolation.network.x"`, `did you mean "isolation.network"`},
		{"'isolation.network' = 'full'", "1:1", `unknown key "isolation.network"`, ""},
		{"[isolation.resource]\npids_limit = 1\ncpus = 2", "1:12", `unknown table "isolation.resource"`, `did you mean "isolation.resources"`},
		{"[frobnicate]\na = 1", "1:2", `unknown table "frobnicate"`, ""},
		{"[isolation.network]\na = 1", "1:12", "isolation.network must be a string, not a table", ""},
		{"isolation = {network = {}}", "1:14", "isolation.network must be a string, not a table", ""},
		{"[[isolation]]\nnetwork = 'none'", "1:3", "[[isolation]] is a list of tables", ""},
		{"isolation = 3", "1:1", "isolation is a table; want [isolation] and its keys", ""},
		{"profiles = 3", "1:1", "profiles is a table", ""},
		{"profiles.x = 3", "1:10", "profiles.x is a table", ""},

		{"[profiles.x]\nprovider = 'host'", "2:1", `unknown key "profiles.x.provider"`, ""},
		{"[profiles.x]\nextend = 'online'", "2:1", `unknown key "profiles.x.extend"`, `did you mean "profiles.x.extends"`},
		{"[profiles.x.y]", "1:13", `unknown table "profiles.x.y"`, ""},
		{"[profiles.'X y']\nnetwork='none'", "1:11", `profile "X y" is no name; want`, ""},
		{"[profiles.strict]\nnetwork='full'", "1:11", `profile "strict" is built in`, `extends = "strict"`},
		{"[profiles.x]\nextends='y'", "2:1", `unknown profile "y"; want one of`, ""},
		{"[profiles.x]\nextends='onlin'", "2:1", `unknown profile "onlin"`, `did you mean "online"`},
		{"[profiles.x]\nextends='y'\n[profiles.y]\nextends='x'", "2:1", `extends itself`, ""},
		{"[isolation]\npolicy_profile = 'nope'", "2:1", `unknown profile "nope"`, ""},
		{"[isolation]\npolicy_profile = 'No Name'", "2:18", `is no name`, ""},

		{"mode = 3", "1:8", "mode must be a string, not an integer", ""},
		{"mode = 'nromal'", "1:8", `mode is "nromal"; want one of ["plan"`, `did you mean "normal"`},
		{"isolation.protect = 'yes'", "1:21", "isolation.protect must be true or false, not a string", ""},
		{"isolation.rw = 'x'", "1:11", "isolation.rw must be a list of strings, not a string", ""},
		{"isolation.rw = ['x',\n 3]", "2:2", "an entry of isolation.rw must be a string, not an integer", ""},
		{"isolation.rw = [['x']]", "1:11", "must be a string, not a list", ""},
		{"isolation.rw = [{}]", "1:17", "must be a string, not a table", ""},
		{"isolation.rw = [true]", "1:17", "must be a string, not a boolean", ""},
		{"isolation.rw = [1.5]", "1:17", "must be a string, not a number", ""},
		{"isolation.rw = [1979-05-27]", "1:17", "must be a string, not a date or time", ""},
		{"isolation.network = ['none']", "1:11", "isolation.network must be a string, not a list", ""},
		{"isolation.resources.cpus = inf", "1:28", `isolation.resources.cpus is "inf"; want 0.01 to 4096`, ""},
		{"isolation.resources.cpus = nan", "1:28", `is "nan"; want`, ""},
		{"isolation.resources.cpus = 0x10", "1:28", `is "0x10"; want`, ""},
		{"isolation.resources.pids_limit = 0", "1:34", `is "0"; want 1 to 4194304`, ""},
		{"isolation.resources.pids_limit = -5", "1:34", `is "-5"; want`, ""},
		{"isolation.resources.memory_mb = 1.5", "1:33", "must be an integer, not a number", ""},
		{"isolation.resources.memory_mb = 99999999999999999999", "1:33", "want 16 to 1073741824", ""},
		{"isolation.resources.timeout = 7200", "1:31", `must be a string such as "90m" or "2h", not an integer`, ""},
		{"isolation.resources.timeout = '2 hours'", "1:31", `is "2 hours"; want a string such as`, ""},
		{"isolation.resources.timeout = '-2h'", "1:31", `is "-2h"; want 1s to 720h0m0s`, ""},

		{"isolation.rw = ['/a', \"/b\\u0000\"]", "1:23", "has a control character", ""},
		{"isolation.rw = ['~bob/x']", "1:17", "another user's home", ""},
		{"isolation.ro = ['~/.config/bawn/config.toml']", "1:17", "Bawn's own state", ""},
		{"isolation.open = ['~/.local/state/bawn']", "1:19", "Bawn's own state", ""},
		{"isolation.hosts = ['Example.org']", "1:20", `host "Example.org" is not in normal form; write "example.org"`, ""},
		{"pinned = ['mode']", "1:1", "only be set in the managed file", ""},
		{"agent = '" + strings.Repeat("ü", 100) + "'", "1:9", "… (200 bytes)", ""},
	} {
		in := world(t)
		put(t, in.User(), c.in)
		e := refused(t, in)[0]
		place := fmt.Sprintf("%d:%d", e.Place.Line, e.Place.Column)
		if place != c.where || e.Place.File != in.User() || !strings.Contains(e.Error(), c.want) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%q:\n got %v (hint %q)\nwant %s: %s (hint %q)", c.in, e, e.Hint, c.where, c.want, c.hint)
		}
		if c.hint == "" && strings.Contains(e.Hint, "did you mean") {
			t.Errorf("%q: hint %q", c.in, e.Hint)
		}
	}
}

func TestPinnedNamesAreChecked(t *testing.T) {
	in := world(t)
	put(t, in.ManagedPath, "pinned = ['isolation.netwrok', 'pinned', 'profiles']\n")
	errs := refused(t, in)
	if len(errs) != 2 || errs[0].Hint != `did you mean "isolation.network"` || errs[0].Place.Column != 11 {
		t.Errorf("%v (%q)", errs, errs.Hint())
	}
}

// TestAllErrorsAtOnce: in the order of the file, but not without end.
func TestAllErrorsAtOnce(t *testing.T) {
	in := world(t)
	put(t, in.User(), "mode='x'\n[isolation]\nnet='x'\nprotect=1\n")
	errs := refused(t, in)
	if len(errs) != 3 || strings.Count(errs.Error(), "\n") != 2 || errs.Hint() == "" {
		t.Errorf("%d errors: %v", len(errs), errs)
	}
	put(t, in.User(), strings.Repeat("a.a", 1)+"=1\n"+numbered("k%d=1\n", 5000))
	if errs := refused(t, in); len(errs) != maxErrors {
		t.Errorf("%d errors; want %d", len(errs), maxErrors)
	}
	if (Errors{}).Hint() != "" {
		t.Error("a hint from nowhere")
	}
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestHostileFilesTakeNoTime: each of these is below the size limit.
func TestHostileFilesTakeNoTime(t *testing.T) {
	entries := numbered("'/p%d',", maxEntries)
	for name, content := range map[string]string{
		"unknown keys":   numbered("key_number_%d = 1\n", 40000),
		"unknown tables": numbered("[t%d]\nx = 1\n", 40000),
		"long key":       strings.Repeat("a.", 400000) + "a = 1",
		"long header":    "[" + strings.Repeat("a.", 100000) + "a]\n" + numbered("k%d=1\n", 40000),
		"deep list":      "x = " + strings.Repeat("[", 500000),
		"long list":      "[isolation]\nro = [" + strings.Repeat("'a',", 200000) + "]",
		"many profiles":  numbered("[profiles.p%d]\nnetwork='none'\n", 20000),
		"long value":     "mode = '" + strings.Repeat("x", 900000) + "'",
		"long chain": numbered("[profiles.p%d]\nextends = 'p0'\n", 1) + "ro=[" + entries + "]\n" +
			numbered("[profiles.q%d]\nextends = 'p0'\nro=["+entries+"]\ndeny=["+entries+"]\nprotected=["+strings.ReplaceAll(entries, "/", "")+"]\n", maxProfiles-1),
	} {
		in := world(t)
		put(t, in.projectFile(), content)
		start := time.Now()
		errs := refused(t, in)
		if took := time.Since(start); took > time.Minute { // what is not linear takes hours
			t.Errorf("%s took %v", name, took)
		}
		if len(errs.Error()) > 10000 {
			t.Errorf("%s: %d bytes of errors", name, len(errs.Error()))
		}
	}
}

func TestTooManyOfAnything(t *testing.T) {
	chain := numbered("[profiles.p%d]\nextends='p1'\n", 1) // p0 extends p1 …
	for i := 1; i <= maxChain; i++ {
		chain += fmt.Sprintf("[profiles.p%d]\nextends='p%d'\n", i, i+1)
	}
	chain += fmt.Sprintf("[profiles.p%d]\n", maxChain+1)
	for want, content := range map[string]string{
		"more than 1024 entries":          "isolation.rw = [" + numbered("'/p%d',", maxEntries+1) + "]",
		"more than 32 profiles":           numbered("[profiles.p%d]\n", maxProfiles+1),
		"more than 8 profiles extend one": chain,
		"has more than 1048576 bytes":     strings.Repeat("#", maxBytes+1),
	} {
		in := world(t)
		put(t, in.User(), content)
		if errs := refused(t, in); !strings.Contains(errs.Error(), want) {
			t.Errorf("%.100v; want %q", errs, want)
		}
	}
	in := world(t) // control: exactly as many
	put(t, in.User(), "isolation.rw = ["+numbered("'/p%d',", maxEntries)+"]\n"+numbered("[profiles.p%d]\n", maxProfiles))
	mustLoad(t, in)
}

// TestFilesThatAreNone: a missing file is no error, one that can't be read is.
func TestFilesThatAreNone(t *testing.T) {
	for _, of := range []func(Inputs) string{Inputs.managed, Inputs.User, Inputs.projectFile} {
		in := world(t)
		put(t, of(in), "")
		mustLoad(t, in)
		for what, make := range map[string]func(string) error{
			"directory": func(p string) error { return os.Mkdir(p, 0o700) },
			"pipe":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
			"loop":      func(p string) error { return os.Symlink(p, p) },
		} {
			if err := os.Remove(of(in)); err != nil {
				t.Fatal(err)
			}
			if err := make(of(in)); err != nil {
				t.Fatal(err)
			}
			if e := refused(t, in)[0]; e.Place.File != of(in) {
				t.Errorf("%s: %v does not name %s", what, e, of(in))
			}
		}
	}
}

func TestValuesAreRead(t *testing.T) {
	in := world(t)
	put(t, in.User(), `
isolation = { network = "full", resources = { pids_limit = 0x1_0, cpus = 2, timeout = "1h30m" } }
profiles.x = { rw = ["/a"], resources.open_files = 1_000 }
[profiles.x.resources]
`)
	if errs := refused(t, in); !strings.Contains(errs.Error(), "already exists") {
		t.Error(errs) // an inline table is closed
	}
	put(t, in.User(), `
isolation = { network = "full", resources = { pids_limit = 0x1_0, cpus = 2, timeout = "1h30m" } }
profiles.x = { rw = ["/a"], resources.open_files = 1_000 }
`)
	in.Flags.Profile = ptr("x")
	iso := mustLoad(t, in).Isolation(in.Workspace)
	if r := iso.Resources; r.PIDs != 16 || r.CPUs != 2 || r.Timeout != 90*time.Minute || r.OpenFiles != 1000 {
		t.Errorf("%+v", r)
	}
}

func TestKindOfEveryNode(t *testing.T) {
	for k := unstable.Invalid; k <= unstable.DateTime; k++ {
		if s := kindOf(k); s == "" {
			t.Errorf("%v has no words", k)
		}
	}
}

func TestShow(t *testing.T) {
	for want, v := range map[string]any{
		`"a\"b\\c"`: `a"b\c`, `"\U0000001B[2J\U0000202E"`: "\x1b[2J\u202e", "1.0": 1.0, "1.5": 1.5, "true": true, "7": int64(7),
		`"12h"`: 12 * time.Hour, `"1h30m"`: 90 * time.Minute, `"10s"`: 10 * time.Second, `"1h0m10s"`: time.Hour + 10*time.Second,
	} {
		if got := show(v); got != want {
			t.Errorf("show(%v) = %s; want %s", v, got, want)
		}
	}
}
