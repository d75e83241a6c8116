package gitstore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

func FuzzParseIndex(f *testing.F) {
	id := strings.Repeat("ab", 20)
	f.Add([]byte("H 100644 " + id + " 0\tf\x00"))
	f.Add([]byte("S 120000 " + id + " 2\ta/b\x00M 160000 " + id + " 1\tc\x00"))
	f.Add([]byte("H 100644 " + id + " 0\t.git/x\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := parseIndex(text, 40)
		if err != nil {
			return
		}
		for p, list := range x {
			if !filepath.IsLocal(p) || filepath.Clean(p) != p || strings.Contains(strings.ToLower(p), ".git/") || strings.HasSuffix(strings.ToLower("/"+p), "/.git") {
				t.Errorf("path %q", p)
			}
			if len(list) > 4 {
				t.Errorf("%q has %d entries", p, len(list))
			}
		}
		// What update-index is told makes of nothing the index again.
		if got := strings.Count(string(difference(index{}, x, strings.Repeat("0", 40))), "\x00"); got < len(x) {
			t.Errorf("%d lines for %d paths", got, len(x))
		}
		if m, _, apart := merge3(index{}, index{}, x); len(apart) > 0 || !m.same(x) {
			t.Errorf("joined with nothing: %v, %q", m, apart)
		}
		for p, list := range x {
			list = slices.Clone(list)
			for i := range list {
				list[i].skip = false
			}
			if again, err := parseIndex([]byte(lines(p, list)), 40); err != nil || !slices.Equal(again[p], list) {
				t.Errorf("%q comes back as %v, %v", p, again, err)
			}
		}
	})
}

func FuzzMerge3(f *testing.F) {
	f.Add([]byte("aab"), []byte("abb"), []byte("ab"))
	f.Fuzz(func(t *testing.T, b, h, p []byte) {
		of := func(text []byte) index {
			x := index{}
			for i, c := range text[:min(len(text), 8)] {
				if c%4 != 0 {
					x[string(rune('a'+i))] = []entry{{mode: "100644", id: string(rune('0' + c%4))}}
				}
			}
			return x
		}
		base, host, private := of(b), of(h), of(p)
		h1, g1, a1 := merge3(base, host, private)
		g2, h2, a2 := merge3(base, private, host)
		if !slices.Equal(a1, a2) || !h1.same(h2) || !g1.same(g2) {
			t.Fatalf("it matters who is asked first: %v %v %q, %v %v %q", h1, g1, a1, h2, g2, a2)
		}
		for _, p := range a1 {
			if !slices.Equal(h1[p], host[p]) || !slices.Equal(g1[p], private[p]) {
				t.Errorf("%q apart: %v and %v", p, h1[p], g1[p])
			}
			delete(h1, p)
			delete(g1, p)
		}
		if !h1.same(g1) {
			t.Errorf("the sides differ elsewhere: %v, %v", h1, g1)
		}
		if len(a1) == 0 && (base.same(host) && !h1.same(private) || base.same(private) && !h1.same(host)) {
			t.Errorf("of %v, %v and %v comes %v", base, host, private, h1)
		}
	})
}

func FuzzRefs(f *testing.F) {
	id := strings.Repeat("ab", 20)
	f.Add("refs/heads/main", id+"\n", "# pack-refs with: peeled\n"+id+" refs/tags/v1\n^"+id+"\n")
	f.Add("refs/heads/a", "ref: refs/heads/b\n", "")
	f.Add("refs/heads/-x", "x", id+" refs/heads/../x\n")
	f.Fuzz(func(t *testing.T, name, loose, packed string) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if strings.HasPrefix(name, "refs/") && filepath.IsLocal(name) && root.MkdirAll(filepath.Dir(name), 0o755) == nil {
			_ = root.WriteFile(name, []byte(loose), 0o644)
		}
		_ = root.MkdirAll("refs", 0o755)
		_ = root.WriteFile("packed-refs", []byte(packed), 0o644)
		tr, err := readRefs(root, 40)
		if err != nil {
			return
		}
		for n, id := range tr.refs {
			if !isID(id, 40) || !strings.HasPrefix(n, "refs/") || !formatOK(n) {
				t.Errorf("%q is at %q", n, id)
			}
			if _, err := os.Lstat(filepath.Join(dir, n)); err != nil { // a packed one
				if got := without([]byte(packed), n); strings.Contains("\n"+string(got)+"\n", "\n"+id+" "+n+"\n") {
					t.Errorf("%q is still in %q", n, got)
				}
			}
		}
		_, _ = parseHead(loose, 40)
		for _, l := range parseLog([]byte(packed), 40) {
			if !isID(stackIDs([]string{l})[0], 40) {
				t.Errorf("a log line %q", l)
			}
		}
	})
}

// Names that nameOK accepts are accepted by git.
func FuzzNameOK(f *testing.F) {
	testenv.Need(f, "git")
	for _, s := range []string{"refs/heads/a", "refs/tags/a/b.c", "refs/heads/-x", "refs/heads/é", "refs/heads/a.lock/b", "refs/heads/@", "refs/stash"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if nameOK(name) != nil {
			return
		}
		if _, err := tryRun("/", human(), "git", "check-ref-format", name); err != nil {
			t.Errorf("git refuses %q", name)
		}
	})
}

// What is kept of a configuration has no setting that is not on the list, however
// git reads it.
func FuzzConfig(f *testing.F) {
	testenv.Need(f, "git")
	for _, s := range []string{
		"[core]\n\tbare = false\n\tfsmonitor = x\n", "[remote \"a\"]\n url = https://u:p@h/x ; c\n", "[remote \"a]\\\"b\"]\nurl=x\\\ny\n", "[include]\npath=x\n", "[core]\nbare\n",
		"[filter \"lfs\"]\nclean = git-lfs clean -- %f\n", "[alias] x = !sh\n", "[a.b]\nc = \"d # e\" # f\n", "[core] worktree = /x\n", "[user]\n\tname = \"a\\tb\"  c \r\n", "\ufeff[core]\nbare=0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseConfig(text)
		if err != nil {
			return
		}
		clean := cleanConfig(list, false)
		again, err := parseConfig(clean)
		if err != nil || cleanConfig(again, false) != clean {
			t.Fatalf("%q is cleaned to %q, and that to %q: %v", text, clean, cleanConfig(again, false), err)
		}
		file := filepath.Join(t.TempDir(), "config")
		write(t, file, clean)
		out, err := tryRun("/", human(), "git", "config", "-z", "-f", file, "--no-includes", "--list")
		if err != nil {
			t.Fatalf("git can't read %q: %s", clean, out)
		}
		n := 0
		for kv := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
			if kv == "" {
				continue
			}
			n++
			key, value, _ := strings.Cut(kv, "\n")
			at, end := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
			s := setting{section: key[:at], key: key[end+1:], value: value}
			if end > at {
				s.sub = key[at+1 : end]
			}
			known, exact := keptExactly[key]
			if !kept[s.name()] && (!exact || known != value) || s.key == "url" && strings.Contains(value, "::") {
				t.Errorf("%q has %q = %q for git", clean, key, value)
			}
		}
		if n != len(again) {
			t.Errorf("%q has %d settings for git, %d here", clean, n, len(again))
		}
	})
}

// What git reads in a configuration is what is read here.
func TestParseConfig(t *testing.T) {
	testenv.Need(t, "git")
	for _, text := range []string{
		"[core]\n\tbare = false\n[remote \"o.r\"]\n\turl = x # c\n\tfetch = \"+a:b\"\n", "[a \"x\\\\y\\\"z\"] k=v;c\n", "[A.B]\nK = V\n[a]\nflag\n", "[a]\nb = one\\\n two\n", "[a]\nb = \" x \" y  \n", "[a]\r\nb = c\r\n",
	} {
		file := filepath.Join(t.TempDir(), "config")
		write(t, file, text)
		var got []string
		list, err := parseConfig(text)
		for _, s := range list {
			key := s.section + "."
			if s.sub != "" {
				key += s.sub + "."
			}
			if key += s.key; !s.bare {
				key += "\n" + s.value
			}
			got = append(got, key)
		}
		want := strings.Split(strings.TrimSuffix(run(t, "/", human(), "git", "config", "-z", "-f", file, "--list"), "\x00"), "\x00")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q: %v", text, got, want, err)
		}
	}
}

// Nothing secret and nothing that runs is in a private configuration.
func TestCleanConfig(t *testing.T) {
	ws := newHost(t)
	secrets := [][]string{
		{"remote.origin.url", "https://user:hunter2@example.org/x.git"}, {"remote.gh.url", "https://hunter2@example.org/x.git"}, {"remote.q.url", "https://example.org/x?token=hunter2"},
		{"http.extraHeader", "hunter2"}, {"credential.helper", "!echo hunter2"}, {"core.fsmonitor", "hunter2"}, {"core.sshCommand", "hunter2"}, {"alias.x", "!hunter2"},
		{"filter.lfs.clean", "hunter2"}, {"remote.e.url", "ext::hunter2"}, {"url.https://hunter2@h/.insteadOf", "x"}, {"include.path", "hunter2"}, {"core.hooksPath", "/hunter2"},
		{"gpg.program", "hunter2"}, {"core.worktree", ws}, {"submodule.s.update", "!hunter2"}, {"branch.main.description", "hunter2"}, {"user.signingkey", "hunter2"}, {"diff.x.textconv", "hunter2"},
	}
	for _, kv := range secrets {
		run(t, ws, human(), "git", "config", kv[0], kv[1])
	}
	run(t, ws, human(), "git", "config", "--unset", "core.worktree")
	run(t, ws, human(), "git", "config", "branch.main.remote", "origin")
	w := newWorld(t, ws)
	text, err := os.ReadFile(w.private("config"))
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("%s, %v", text, err)
	}
	if got := w.guest("remote", "get-url", "origin") + w.guest("config", "branch.main.remote"); got != "https://example.org/x.gitorigin" {
		t.Errorf("the remote is %q", got)
	}
}
