package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// hiddenBy lists the patterns of a configuration.
func hiddenBy(iso bawn.Isolation) []string {
	var list []string
	for _, m := range iso.Mounts {
		if m.Access == bawn.Hidden && strings.ContainsAny(m.Path, "*?") {
			list = append(list, m.Path)
		}
	}
	return list
}

func TestDenyPatterns(t *testing.T) {
	in := world(t)
	ws, data := in.Workspace, t.TempDir()
	for text, want := range map[string][]string{
		`deny = ["*.pem"]`:                  {ws + "/**/*.pem"},
		`deny = ["**/.env"]`:                {ws + "/**/.env"},
		`deny = ["**/a/b?"]`:                {ws + "/**/a/b?"},
		`deny = ["./*.pem", "conf/**/*.k"]`: {ws + "/*.pem", ws + "/conf/**/*.k"},
		`deny = ["~/keys/*"]`:               {in.Home + "/keys/*"},
		`deny = ["/srv/**/id_*"]`:           {"/srv/**/id_*"},
		`deny = ["app/[id]", "literal"]`:    nil,
		"deny = [\"*.p\"]\nro = [\"" + data + "\", \"" + data + "/in\"]": {ws + "/**/*.p", data + "/**/*.p"},
	} {
		put(t, in.User(), "[isolation]\n"+text)
		got := map[string]bool{}
		for _, p := range hiddenBy(mustLoad(t, in).Isolation(ws)) {
			got[p] = true
		}
		all := map[string]bool{}
		for _, p := range want {
			all[p] = true
		}
		if !reflect.DeepEqual(got, all) {
			t.Errorf("%s hides %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		`*`: "everything", `**/*`: "everything", `**`: "everything", `*.{a,b}`: "only", `**/[ab]*`: "only", `!*.pem`: "no exceptions", `~other/*`: "another user",
	} {
		put(t, in.User(), "[isolation]\ndeny = ['"+text+"']")
		if errs := refused(t, in); !strings.Contains(errs.Error(), want) {
			t.Errorf("%s: %v; want %q", text, errs, want)
		}
	}
}

// TestPatternsOfOthers: a key that takes no patterns does not read past one.
func TestPatternsOfOthers(t *testing.T) {
	in := world(t)
	put(t, in.User(), "[isolation]\ncache_dirs = ['~/.cache/*']")
	if errs := refused(t, in); !strings.Contains(errs.Error(), "is a pattern") {
		t.Error(errs)
	}
}

// TestProjectsPatterns: a project may deny more, and opens nothing again.
func TestProjectsPatterns(t *testing.T) {
	in := world(t)
	put(t, in.User(), "[isolation]\ndeny = ['*.pem']")
	put(t, in.projectFile(), "[isolation]\ndeny = ['*.key']")
	got := hiddenBy(mustLoad(t, in).Isolation(in.Workspace))
	if len(got) != 2 {
		t.Errorf("the patterns are %q, want the user's and the project's", got)
	}
}

// TestEveryDockerKeyCounts: each key of the table docker_options changes what the
// provider is told.
func TestEveryDockerKeyCounts(t *testing.T) {
	values := map[string]string{
		"image": "'node@" + digest + "'", "workspace": "'/w'", "extra_args": "['--hostname=x']", "allow_args": "['--privileged']", "memory_swap_mb": "5",
		"runtime": "'crun'", "host": "'/run/other.sock'", "accept_escapes": "true",
	}
	in := world(t)
	put(t, in.User(), "")
	without := mustLoad(t, in).Docker()
	for _, name := range keyPaths(dockerTable, func(*key) bool { return true }) {
		put(t, in.User(), "[isolation.docker_options]\n"+name+" = "+values[name])
		if reflect.DeepEqual(mustLoad(t, in).Docker(), without) {
			t.Errorf("%s = %s changes nothing", name, values[name])
		}
	}
}
