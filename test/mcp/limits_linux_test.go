package mcp_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// can checks that the guest succeeded, or that it failed.
func can(t *testing.T, what string, r result, want bool) {
	t.Helper()
	could(t, []string{what}, r, func(int) bool { return want })
}

// could checks which of its steps the guest could do.
func could(t *testing.T, what []string, r result, want func(i int) bool) {
	t.Helper()
	lines := strings.Split(r.out, "\n")
	for i, w := range what {
		if got := i < len(lines) && strings.HasPrefix(lines[i], "yes"); got != want(i) {
			t.Errorf("%s: it could: %t, want %t: %d %.500q\n%s", w, got, want(i), r.code, r.out, r.err)
		}
	}
}

func always(is bool) func(int) bool { return func(int) bool { return is } }

// TestFiles: a plugin sees and changes what its manifest names, its own
// directory, and nothing else that is the human's: not even the manifest. The
// control is the same program without a sandbox.
func TestFiles(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	for name, text := range map[string]string{
		"src/project/docs/a": "a", "src/project/out/b": "b", "src/project/secret": "s", "notes": "n", ".local/state/bawn/pins/p.json": "{}",
		".local/share/bawn/plugins/other/x": "x", ".local/share/bawn/plugins/p/kept": "k",
	} {
		r.put(t, name, text)
	}
	start := r.plugin(t, "p", r.manifest(`files = {read = ["BIN", "docs"], write = ["out"]}`))
	in := func(what string, names ...string) (words []string) {
		for _, name := range names {
			words = append(words, what+"="+filepath.Join(r.home, name))
		}
		return words
	}
	may := append(in("read", "src/project/docs/a", "src/project/out/b", ".local/share/bawn/plugins/p/kept"),
		in("write", "src/project/out/c", ".local/share/bawn/plugins/p/new")...)
	got := r.run(t, append(start, may...)...)
	could(t, may, got, always(true))
	hidden := in("read", "src/project/secret", "src/project/.git", "notes", ".config/bawn/plugins/p.toml", ".local/state/bawn/pins/p.json", ".local/share/bawn/plugins/other/x")
	closed := in("write", "src/project/docs/a")
	got = r.run(t, append(start, slices.Concat(hidden, closed)...)...)
	could(t, slices.Concat(hidden, closed), got, always(false))
	control := append([]string{filepath.Join(r.bin, "guest"), guestWord}, slices.Concat(hidden, closed)...)
	could(t, control[2:], r.run(t, control...), always(true))
	r.untouched(t, start, "src/project/secret", "notes", ".config/bawn/plugins/p.toml", ".local/state/bawn/pins/p.json", ".local/share/bawn/plugins/other/x")
}

// untouched has a guest write files, which it may believe it has, in what covers
// them, and wants them as they were. The control writes them.
func (r *account) untouched(t *testing.T, start []string, names ...string) {
	t.Helper()
	var words []string
	for _, name := range names {
		words = append(words, "write="+filepath.Join(r.home, name))
	}
	changed := func() (n int) {
		for _, name := range names {
			if text, err := os.ReadFile(filepath.Join(r.home, name)); err != nil || string(text) == "written" {
				n++
			}
		}
		return n
	}
	r.run(t, append(start, words...)...)
	if n := changed(); n != 0 {
		t.Errorf("%d of %q are changed", n, names)
	}
	r.run(t, append([]string{filepath.Join(r.bin, "guest"), guestWord}, words...)...)
	if n := changed(); n != len(names) {
		t.Errorf("control: %d of %q are changed", n, names)
	}
}

// TestGivenAlone: what the human's configuration gives to every session is not
// given to a plugin: variables, places and hosts. The control is a session that
// is no plugin's.
func TestGivenAlone(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.put(t, "shared", "s")
	r.put(t, ".config/bawn/config.toml", `isolation.env = ["HOSTS_OWN"]
isolation.rw = ["~/shared"]
isolation.hosts = ["mine.example.com"]
`)
	r.put(t, ".config/bawn/policy.toml", `[[rule]]
kind = "network"
pattern = "rule.example.com"
verdict = "allow"
reason = "the human reads it"
`)
	mine := []string{"env=HOSTS_OWN", "read=" + r.home + "/shared", "lookup=mine.example.com", "lookup=rule.example.com", "lookup=pypi.org"}
	control := append([]string{filepath.Join(r.bin, "bawn"), "run", "-q", "--", r.bin + "/guest", guestWord}, mine...)
	could(t, mine, r.run(t, control...), always(true))
	start := r.plugin(t, "p", r.manifest(`files = {read = ["BIN"]}`+"\n"+`hosts = ["api.example.com"]`+"\n"+`env = {MODE = "ro"}`))
	its := []string{"lookup=api.example.com", "env=MODE", "env=HOME"}
	got := r.run(t, append(start, slices.Concat(mine, its)...)...)
	could(t, slices.Concat(mine, its), got, func(i int) bool { return i >= len(mine) })
	if !strings.Contains(got.out, "/bawn/plugins/p\n") {
		t.Errorf("its home: %q", got.out)
	}
	offline := r.manifest(`files = {read = ["BIN"]}`)
	can(t, "without hosts", r.run(t, r.plugin(t, "p", offline, "lookup=api.example.com")...), false)
}

// TestLimits: memory, processes, processor time and time hold for the plugin as
// a whole. The control is the same plugin with more.
func TestLimits(t *testing.T) {
	t.Parallel()
	r := newAccount(t, "cgroup", "root")
	with := func(limits string, words ...string) result {
		return r.run(t, r.plugin(t, "p", r.manifest(`files = {read = ["BIN"]}`+"\nlimits = {"+limits+"}"), words...)...)
	}
	can(t, "control: memory", with(`memory = "1g"`, "memory=200"), true)
	can(t, "memory", with(`memory = "64m"`, "memory=200"), false)
	can(t, "control: processes", with(`pids = 128`, "fork=60"), true)
	can(t, "processes", with(`pids = 40`, "fork=60"), false)
	can(t, "control: time", with(`time = "20s"`, "sleep=1500ms"), true)
	if got := with(`time = "1s"`, "sleep=20s"); got.code != 124 || got.out != "" {
		t.Errorf("time: %+v", got)
	}
	less, more := spent(t, with(`cpu = 0.1`, "burn")), 0
	for range 20 { // as long as the machine does not have that much for it
		if more = spent(t, with(`cpu = 2.0`, "burn")); more >= 2*less {
			break
		}
	}
	if less > 300 || more < 2*less {
		t.Errorf("it got %d ms of a second with a tenth of a core, and %d ms with two", less, more)
	}
}

// spent is the processor time that a guest got, in milliseconds.
func spent(t *testing.T, r result) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(r.out, "yes:")))
	if err != nil {
		t.Errorf("%q\n%s", r.out, r.err)
	}
	return n
}
