package grammar

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A real program runs what the checker has proven, where it is installed.
type real struct {
	path string
	args func(program string) []string
}

// installed are the awks, seds and jqs of this machine.
func installed(names ...string) (out []real) {
	for _, name := range names {
		words := strings.Fields(name)
		file, err := exec.LookPath(words[0])
		if err != nil {
			continue
		}
		out = append(out, real{file, func(program string) []string {
			return append(append(words[1:len(words):len(words)], program), "in")
		}})
	}
	return out
}

var (
	seds = sync.OnceValue(func() []real { return installed("sed", "sed -n", "sed -E", "busybox sed") })
	awks = sync.OnceValue(func() []real { return installed("mawk", "gawk", "original-awk", "busybox awk") })
	jqs  = sync.OnceValue(func() []real { return installed("jq -n") })
)

// secretText stands in the environment; a proven program never prints it.
const secretText = "s3cr3t-4711"

// does runs a program in a directory of its own that holds one file of input
// and, below "bin", commands that leave a marker. It returns what the program
// did besides printing.
func (r real) does(t testing.TB, program string) string {
	return r.doesWithin(t, program, 300*time.Millisecond)
}

func (r real) doesWithin(t testing.TB, program string, patience time.Duration) string {
	dir, err := os.MkdirTemp("", "bawn")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "bin")
	marker := "#!/bin/sh\n: >" + dir + "/marker\n"
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"id", "touch", "x"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(marker), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("a x 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, r.path, r.args(program)...)
	var out limited
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.WaitDelay = dir, []string{"PATH=" + bin, "SECRET=" + secretText}, &out, time.Second
	_ = cmd.Run() // a program that is wrong, or never ends, does no harm
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.ReadFile(filepath.Join(dir, "in"))
	switch {
	case err != nil || string(in) != "a x 1\n":
		return "it changed its input"
	case len(left) != 2:
		return "it left " + strings.Join(left, " ")
	case strings.Contains(out.String(), secretText):
		return "it printed the environment"
	}
	return ""
}

// limited keeps the first 64 KiB of an endless output.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := 64<<10 - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// TestRealProgramsDoHarm is the control: what the checkers refuse does happen.
func TestRealProgramsDoHarm(t *testing.T) {
	for _, tt := range []struct {
		name     string
		programs []real
		harmful  []string
	}{
		{"sed", seds(), []string{"1e id", "w f", "s/a/id/e", "s/a/b/w f", "a one\\\\\nw f"}},
		{"awk", awks(), []string{
			`BEGIN{system("id")}`, `{print > "f"}`, "{print \"x\",\n\"y\" > \"f\"}", `{print "x" | "id"}`, `{print ENVIRON["SECRET"]}`, `{print 1ENVIRON["SECRET"]}`,
			`BEGIN{ exit /"/ || system("id") || /"/ }`, "BEGIN{ x=1; print x \\\n / system(\"id\") / 1 }",
		}},
		{"jq", jqs(), []string{"env", "$ENV.SECRET", `"\u0065nv" | $ENV`}},
	} {
		for _, program := range tt.harmful {
			if len(tt.programs) > 0 && tt.programs[0].doesWithin(t, program, 10*time.Second) == "" {
				t.Errorf("%s %q does nothing: the differential test can't fail", tt.name, program)
			}
		}
	}
}

// agree fails if a proven program does more than print.
func agree(t *testing.T, programs []real, program string) {
	if strings.ContainsRune(program, 0) {
		return // no argument can hold it
	}
	for _, r := range programs {
		if what := r.does(t, program); what != "" {
			t.Fatalf("%s %q is proven, and %s", r.args("")[:1], program, what)
		}
	}
}

// outside reports whether a proven program might name a file of this machine
// that the test must not touch.
func outside(program string) bool { return len(program) > 200 }

func FuzzSed(f *testing.F) {
	for _, s := range []string{
		"s/a/b/w f", "s/x/id/e", "1!G;h;$!d", "y/a/b/;w f", `\cacp`, "a\\\ntext\nw f", "a x\\\\\nw f", "a x\\\nw f", "{p;b};w f", ":a;s/x/y/;ta;e id", "s/[]/]/x/w f", "s/[[:alpha:]/x/w f", "i\\\\\nw f", "/a/,/b/{s/a/b/;p\n}\nw f", "r in\nw f", "sexeye", "b}w f", "#n\ne id", "q5;w f", "1~2p", "$!N;P;D",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if read, err := sedMatch(script); err == nil && read == nil && !outside(script) {
			agree(t, seds(), script)
		}
	})
}

func FuzzAwk(f *testing.F) {
	for _, s := range []string{
		`{print}`, `BEGIN{system("id")}`, `{print > "f"}`, "{print \"x\",\n\"y\" > \"f\"}", `{print (1>2) > "f"}`, `{x++ / system("id") / 1}`, `{exit /"/ || system("id") || /"/}`, `BEGIN{if (1) /"/; system("id"); if (1) /"/ }`,
		"{x \\\n / system(\"id\") / 1}", `{print 1ENVIRON["SECRET"]}`, `/[]/"[(]/ || system("id") || /[]/"]/`, `{print length /"/; system("id"); x = length /"/}`, `{print a[1] / 2 > "f"}`, `{getline x < "f"}`, `{"id" | getline}`, "{print x # c\n > \"f\"}", `{a["x"]++} END {for (k in a) print k > "f"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, program string) {
		if awk(program) == nil && !outside(program) {
			agree(t, awks(), program)
		}
	})
}

func FuzzJQ(f *testing.F) {
	for _, s := range []string{".", ".env", "env", "$ENV", `"\(env)"`, "..env", ". env", "{env}", "{$ENV}", `$__prog_args`, `"\u0065nv"`, "@sh", "input", "input_filename", `.a as $x | $x.env`, "def f: .; f", "reduce .[] as $x (0; .)", "?//env", `."env"`, ".[\"env\"]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, filter string) {
		if jq(filter) == nil && !outside(filter) {
			agree(t, jqs(), filter)
		}
	})
}
