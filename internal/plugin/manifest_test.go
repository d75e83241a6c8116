package plugin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

const whole = `# a comment
name = "github"
version = "1.2.3"
about = "issues and pull requests"
hosts = ["api.github.com", "*.example.org:8443"]
secrets = ["github-token"]
env = {MODE = "ro"}
run = {npx = "@x/server-github@1.2.3", args = ["--stdio"]}

[files]
read = [".", "~/notes"]
write = ["docs/out"]

[limits]
memory = "512m"
pids = 64
cpu = 0.5
time = "30m"
result = "64k"
calls_at_once = 2

[tools]
allow = ["list_*", "get_issue"]
ask = ["list_secrets"]
deny = ["*delete*"]

[arguments]
"get_file.path" = "path"
"*.host" = "host"
`

func parsed(t testing.TB, text string) *Manifest {
	t.Helper()
	m, err := Parse("m.toml", "github", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParse(t *testing.T) {
	want := &Manifest{
		Name: "github", Kind: Server, Version: "1.2.3", About: "issues and pull requests",
		Run:   Run{NPX: "@x/server-github@1.2.3", Args: []string{"--stdio"}},
		Files: Files{Read: []string{".", "~/notes"}, Write: []string{"docs/out"}},
		Hosts: []string{"api.github.com", "*.example.org:8443"}, Secrets: []string{"github-token"}, Env: map[string]string{"MODE": "ro"},
		Limits:    Limits{MemoryMB: 512, PIDs: 64, CPUs: 0.5, Time: 30 * time.Minute, ResultBytes: 64 << 10, CallsAtOnce: 2},
		Tools:     Tools{Allow: []string{"list_*", "get_issue"}, Ask: []string{"list_secrets"}, Deny: []string{"*delete*"}},
		Arguments: map[string]string{"get_file.path": "path", "*.host": "host"},
	}
	got := parsed(t, whole)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	text, err := got.Text()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, parsed(t, string(text))); diff != "" {
		t.Errorf("written and read again: %s\n%s", diff, text)
	}
}

// TestParseRefuses names what is wrong and where. The control is that the
// manifest is read without the change.
func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, with, want string }{
		"unknown key":            {`version =`, `versoin =`, `m.toml:3:1: unknown key "versoin"; want name, kind,`},
		"unknown key in a table": {`pids = 64`, `pid = 64`, `m.toml:16:1: unknown key "pid" in "[limits]"; want memory, pids`},
		"type":                   {`pids = 64`, `pids = "64"`, `m.toml:16:8: `},
		"key twice":              {`pids = 64`, "pids = 64\npids = 65", `m.toml:`},
		"no TOML":                {`[files]`, `[files`, `m.toml:10:7: expected`},
		"another name":           {`"github"`, `"gitlab"`, `m.toml:2: name: it is "gitlab"; want "github"`},
		"kind":                   {`version =`, "kind = \"wasm\"\nversion =", `m.toml:3: kind: `},
		"package without":        {`github@1.2.3"`, `github"`, `m.toml:8: run.npx: `},
		"package by tag":         {`github@1.2.3"`, `github@latest"`, `m.toml:8: run.npx: `},
		"package by address":     {`@x/server-github@1.2.3`, `https://x.test/a.tgz`, `m.toml:8: run.npx: `},
		"package as a flag":      {`@x/server-github@1.2.3`, `--call=x@1.2.3`, `m.toml:8: run.npx: `},
		"two to run":             {`run = {npx`, `run = {command = ["x"], npx`, `m.toml:8: run: it states 2`},
		"nothing to run":         {`run = {npx = "@x/server-github@1.2.3", `, `run = {`, `m.toml:8: run: it states 0`},
		"image by tag":           {`run = {npx = "@x/server-github@1.2.3", `, `run = {image = "x:latest", command = ["x"], `, `m.toml:8: run.image: `},
		"out of the workspace":   {`"docs/out"`, `"docs/../../out"`, `m.toml:12: files.write: "docs/../../out"`},
		"all of the machine":     {`"docs/out"`, `"/"`, `m.toml:12: files.write: `},
		"another's home":         {`"docs/out"`, `"~root/x"`, `m.toml:12: files.write: `},
		"a path that turns":      {`"docs/out"`, `"docs/\u202Etxt"`, `m.toml:12: files.write: "docs/\u202etxt"`},
		"host":                   {`api.github.com"`, `https://api.github.com"`, `m.toml:5: hosts: `},
		"all secrets":            {`github-token`, `*`, `m.toml:6: secrets: `},
		"home":                   {`MODE =`, `HOME =`, `m.toml:7: env.HOME: `},
		"loader":                 {`MODE =`, `LD_PRELOAD =`, `m.toml:7: env.LD_PRELOAD: `},
		"own variables":          {`MODE =`, `BAWN_SESSION =`, `m.toml:7: env.BAWN_SESSION: `},
		"memory":                 {`"512m"`, `"5m"`, `m.toml:15: limits.memory: "5m" is refused; want 16 MiB`},
		"memory that overflows":  {`"512m"`, `"99999999999999999999g"`, `m.toml:15: limits.memory: `},
		"no processes":           {`pids = 64`, `pids = 0`, `m.toml:16: limits.pids: `},
		"no number":              {`cpu = 0.5`, `cpu = nan`, `m.toml:17: limits.cpu: `},
		"time":                   {`"30m"`, `"-1s"`, `m.toml:18: limits.time: `},
		"result":                 {`"64k"`, `"1g"`, `m.toml:19: limits.result: `},
		"glob":                   {`"list_*"`, `"list_[a-z]"`, `m.toml:23: tools.allow: `},
		"argument":               {`"get_file.path"`, `"get_file"`, `m.toml:28: arguments.get_file: `},
		"what an argument is":    {`= "host"`, `= "hots"`, `m.toml:29: arguments.*.host: `},
		"about in two lines":     {`issues and`, `issues\nand`, `m.toml:4: about: `},
		"about that hides":       {`issues and`, `issues\u200b and`, `m.toml:4: about: `},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(whole, c.old, c.with, 1)
			if text == whole {
				t.Fatal("nothing was replaced")
			}
			m, err := Parse("m.toml", "github", []byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want %s", m, err, c.want)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	m := parsed(t, whole)
	for tool, want := range map[string]bawn.Verdict{
		"list_issues": bawn.Allow, "get_issue": bawn.Allow, "get_issue2": bawn.Ask, "list_secrets": bawn.Ask,
		"list_and_delete": bawn.Deny, "delete": bawn.Deny, "other": bawn.Ask, "": bawn.Ask, "xlist_": bawn.Ask,
	} {
		if got, why := m.Tools.Verdict(tool); got != want || why == "" {
			t.Errorf("%q: %s (%s), want %s", tool, got, why, want)
		}
	}
	if v, _ := (Tools{}).Verdict("x"); v != bawn.Ask {
		t.Errorf("without any glob: %s", v)
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "abc", true}, {"a*c", "abbc", true}, {"a*c", "abcb", false}, {"a*b*c", "axbxxc", true},
		{"", "", true}, {"", "a", false}, {"abc", "abc", true}, {"abc", "ab", false}, {"a**", "a", true}, {"*a", "ba", true}, {"*a", "ab", false},
	} {
		if got := glob(c.pattern, c.name); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestRunFlags(t *testing.T) {
	at := Place{Home: "/home/u", Workspace: "/home/u/p", Own: "/home/u/.local/share/bawn/plugins/github", Fetch: true, Hidden: []string{"/home", "/srv"}}
	got := strings.Join(parsed(t, whole).RunFlags(at), " ")
	want := "--only --agent mcp-github --cwd /home/u/p --ask-timeout 0s --memory 512m --pids 64 --timeout 30m0s --cpus 0.5" +
		" --net allowlist --allow api.github.com --allow *.example.org:8443 --allow *.npmjs.org:443 --secret github-token" +
		" --rw /home/u/.local/share/bawn/plugins/github --rw /home/u/p/docs/out --ro /home/u/p --ro /home/u/notes --deny /home/u --deny /home --deny /srv" +
		" --env MODE=ro --env HOME=/home/u/.local/share/bawn/plugins/github --caches shared"
	if dirs := parsed(t, whole).CacheDirs(at); !slices.Equal(dirs, []string{at.Own + "/.npm", at.Own + "/.cache", at.Own + "/go"}) {
		t.Errorf("%q are kept", dirs)
	}
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(got)); diff != "" {
		t.Error(diff)
	}
	at.Fetch = false
	fetched := strings.Join(parsed(t, whole).RunFlags(at), " ")
	if strings.Contains(fetched, "npmjs") || !strings.HasSuffix(fetched, " --env npm_config_offline=true --env UV_OFFLINE=1 --env GOPROXY=file://"+at.Own+"/go/pkg/mod/cache/download --env GOSUMDB=off") {
		t.Errorf("what has been fetched still reaches its registry: %s", fetched)
	}
	bare := parsed(t, `run.command = ["/bin/server"]`)
	got = strings.Join(bare.RunFlags(at), " ")
	want = "--only --agent mcp-github --cwd /home/u/.local/share/bawn/plugins/github --ask-timeout 0s --memory 1024m --pids 256 --timeout 12h0m0s" +
		" --net none --rw /home/u/.local/share/bawn/plugins/github --deny /home/u --deny /home/u/p --deny /home --deny /srv --env HOME=/home/u/.local/share/bawn/plugins/github"
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(got)); diff != "" {
		t.Error(diff)
	}
}

// TestImageFlags: a container has what it starts in at one place, and nothing
// else to start in.
func TestImageFlags(t *testing.T) {
	at := Place{Home: "/h", Workspace: "/w", Own: "/o"}
	image := "sha256:" + strings.Repeat("a", 64)
	for files, want := range map[string]string{
		`read = ["docs"]`: "--provider docker --image " + image + " --rw /o --ro /w/docs --deny /h --deny /w --env HOME=/workspace",
		`read = ["."]`:    "--provider docker --image " + image + " --rw /o --ro /w --deny /h --env HOME=/o",
	} {
		m := parsed(t, "run = {command = [\"x\"], image = \""+image+"\"}\nfiles = {"+files+"}")
		got := strings.Join(m.RunFlags(at), " ")
		dir := map[bool]string{true: "--cwd /w ", false: "--cwd /o "}[strings.HasSuffix(files, `["."]`)]
		if !strings.HasSuffix(got, want) || !strings.Contains(got, dir) {
			t.Errorf("%s\n got %s\nwant %s… %s", files, got, dir, want)
		}
	}
}

// TestPathsOnce: of two entries for one path the stricter counts, so what may be
// written is not named as read too, and what may be read is not denied.
func TestPathsOnce(t *testing.T) {
	at := Place{Home: "/root", Workspace: "/w", Own: "/o", Hidden: []string{"/root", "/w"}}
	m := parsed(t, `run.command = ["x"]`+"\n"+`files = {read = [".", "~"], write = ["."]}`)
	got := m.paths(at)
	if want := []string{"--rw", "/o", "--rw", "/w", "--ro", "/root"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestArgv(t *testing.T) {
	for text, want := range map[string]string{
		`run = {npx = "a@1.0.0", args = ["x"]}`:                 "npx --yes a@1.0.0 x",
		`run = {uvx = "a==1.0"}`:                                "uvx a==1.0",
		`run = {go = "example.org/a/cmd@v1.0.0", args = ["x"]}`: "go run example.org/a/cmd@v1.0.0 x",
		`run = {command = ["a", "b"], args = ["c"]}`:            "a b c",
	} {
		if got := strings.Join(parsed(t, text).Argv(), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWords(t *testing.T) {
	got := strings.Join(parsed(t, whole).Words(), "\n")
	want := `runs npx --yes @x/server-github@1.2.3 --stdio
says of itself: issues and pull requests
may read and CHANGE docs/out
may read the whole project, ~/notes
may connect to api.github.com, *.example.org:8443, *.npmjs.org:443, and to nothing else
may have these secrets put into requests to the hosts they are bound to: github-token
gets the variables MODE
calls of these tools run WITHOUT asking you: list_*, get_issue; of these ask: list_secrets; all others ask; never called: *delete*
limits: 512 MiB of memory, 64 processes, 0.5 cores, 30m0s at a time, results up to 64 KiB, 2 calls at once`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	bare := parsed(t, `run.command = ["sh", "-c", "echo \u001b[2J; ls"]`).Words()
	if bare[0] != `runs sh -c "echo \x1b[2J; ls"` || bare[1] != "sees no file of yours, neither the project nor your home directory" || bare[2] != "has no network" {
		t.Errorf("%q", bare)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.toml": `run.command = ["x"]`, "a.toml": `run.command = ["x"]`, "bad.toml": `run = 1`, "note.txt": "x", "Bad-Name.toml": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Load(dir)
	if len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" {
		t.Errorf("%v", all)
	}
	if err == nil || !strings.Contains(err.Error(), "bad.toml:1") || !strings.Contains(err.Error(), "Bad-Name") {
		t.Errorf("%v", err)
	}
	if all, err := Load(filepath.Join(dir, "none")); all != nil || err != nil {
		t.Errorf("no directory: %v, %v", all, err)
	}
	if _, err := Read(dir, "../a"); err == nil {
		t.Error("a name with a way out is read")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`run.command = ["x"]`))
	f.Add([]byte("run = {npx = \"a@1\"}\nfiles.read = [\"..\"]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse("m.toml", "github", text)
		if err != nil {
			return
		}
		at := Place{Home: "/h", Workspace: "/w", Own: "/o"}
		for _, w := range append(m.Words(), m.RunFlags(at)[:8]...) {
			if strings.ContainsAny(w, "\n\x1b\r") {
				t.Errorf("%q acts on a terminal", w)
			}
		}
		for _, p := range append(at.below(m.Files.Read), at.below(m.Files.Write)...) {
			if slices.Contains(strings.Split(p, "/"), "..") {
				t.Errorf("%q leads out", p)
			}
		}
		again, err := m.Text()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("m.toml", "github", again); err != nil {
			t.Errorf("what was written is refused: %v\n%s", err, again)
		}
	})
}

// TestTypes says in words what a key takes.
func TestTypes(t *testing.T) {
	for text, want := range map[string]string{
		"[run]\ncommand = 'ls'": "x.toml:2:11: \"run.command\" has a value of another type; want a list of strings",
		"run = 3":               "x.toml:1:7: \"run\" has a value of another type; want a table",
		"[limits]\npids = 'a'":  "x.toml:2:8: \"limits.pids\" has a value of another type; want a whole number",
		"[limits]\ncpu = 'a'":   "x.toml:2:7: \"limits.cpu\" has a value of another type; want a number with a point, such as 1.5",
		"name = ['x']":          "x.toml:1:8: \"name\" has a value of another type; want a string",
		"[files]\nread = [1]":   "x.toml:2:9: \"files.read\" has a value of another type; want a list of strings",
	} {
		if _, err := Parse("x.toml", "x", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q\ngot %v\nwant %s", text, err, want)
		}
	}
}
