package policy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/protect"
)

const tableHome, tableProject = "/home/ada", "/home/ada/p"

// fileQuestion asks about a file of a project.
func fileQuestion(op bawn.Operation, file string) *Question {
	return &Question{
		Action: bawn.Action{Kind: bawn.Filesystem, Operation: op, Resource: file, Dir: tableProject}, Mode: bawn.ModePermissive, Autonomy: bawn.AutonomyFull,
		Contained: bawn.ContainedFully, Workspace: tableProject, Home: tableHome, System: "linux",
	}
}

// paths are files by which an entry counts.
func pathsOf(e *protect.Entry) []string {
	p := strings.NewReplacer("**", "a/b", "*", "x").Replace(e.Path())
	if e.Dir() {
		p += "/file"
	}
	if e.Home() {
		return []string{tableHome + "/" + p}
	}
	return []string{tableProject + "/" + p, tableProject + "/deep/er/" + p, tableProject + "/" + strings.ToUpper(p)}
}

// TestTable: a tool of an agent writes no name of the table, and reads no
// credential. What was left out of the table is the control.
func TestTable(t *testing.T) {
	p := must(New(nil, Options{}))
	for _, e := range protect.All() {
		if !e.Counts("linux") || e.Class == protect.Guard {
			continue
		}
		for _, file := range pathsOf(&e) {
			if d := p.Decide(fileQuestion(bawn.Write, file)); d.Verdict != bawn.Deny || !strings.HasPrefix(d.Rule, "builtin:") {
				t.Errorf("to write %s: %v by %q", file, d.Verdict, d.Rule)
			} else if e.Opens() && !e.Home() && strings.HasPrefix(d.Rule, "builtin:protected:") && !strings.Contains(d.Reason, "isolation.unprotect") && !strings.Contains(d.Reason, "keys of SSH") {
				t.Errorf("to write %s: %q does not say what opens it", file, d.Reason)
			}
			if d := p.Decide(fileQuestion(bawn.Read, file)); e.Secret() && d.Verdict == bawn.Allow {
				t.Errorf("to read %s: %v", file, d.Verdict)
			}
		}
	}
	for _, m := range protect.Left() {
		if d := p.Decide(fileQuestion(bawn.Write, tableProject+"/"+m.Name)); d.Verdict == bawn.Deny {
			t.Errorf("to write %s, which is not in the table: %v by %q", m.Name, d.Verdict, d.Rule)
		}
	}
}

// TestUnprotected: a name that the user has opened counts as any other, in the
// workspace and nowhere else.
func TestUnprotected(t *testing.T) {
	p := must(New(nil, Options{}))
	ask := func(file string, names ...string) bawn.Verdict {
		q := fileQuestion(bawn.Write, file)
		q.Unprotected = names
		return p.Decide(q).Verdict
	}
	for _, name := range protect.Keys() {
		e := protect.Entry{Pattern: name}
		for _, file := range pathsOf(&e)[:2] {
			if v := ask(file, name); v == bawn.Deny && name != ".ssh" {
				t.Errorf("%s is opened: %v", file, v)
			}
			if v := ask(file, "rust-toolchain"); v != bawn.Deny && name != "rust-toolchain" {
				t.Errorf("%s, another one is opened: %v", file, v)
			}
		}
	}
	for _, file := range []string{"/home/ada/.npmrc", "/home/ada/other/.npmrc", "/srv/.npmrc"} {
		if v := ask(file, ".npmrc"); v != bawn.Deny {
			t.Errorf("%s, outside of the project: %v", file, v)
		}
	}
}

// TestOnCopy: a session on a copy of the workspace may write any name of the table there,
// but for the places of credentials, and as little elsewhere as any other.
func TestOnCopy(t *testing.T) {
	p := must(New(nil, Options{}))
	ask := func(op bawn.Operation, file string, onCopy bool) bawn.Verdict {
		q := fileQuestion(op, file)
		q.Copy = onCopy
		return p.Decide(q).Verdict
	}
	for _, name := range []string{".envrc", "sub/.envrc", ".vscode/tasks.json", ".claude/settings.json", ".npmrc"} {
		file := tableProject + "/" + name
		for _, op := range []bawn.Operation{bawn.Write, bawn.Create, bawn.Delete} {
			if v := ask(op, file, true); v == bawn.Deny {
				t.Errorf("%v %s on a copy: %v", op, name, v)
			}
			if v := ask(op, file, false); v != bawn.Deny {
				t.Errorf("control: %v %s in the workspace itself: %v", op, name, v)
			}
		}
	}
	for _, file := range []string{"/home/ada/.envrc", "/home/ada/.bashrc", "/srv/.envrc", tableProject + "/../other/.envrc", tableProject + "/.ssh/id_ed25519", tableProject + "/.netrc"} {
		if v := ask(bawn.Write, filepath.Clean(file), true); v != bawn.Deny {
			t.Errorf("%s: %v", file, v)
		}
	}
	q := fileQuestion(bawn.Exec, "echo x >.envrc")
	q.Action.Kind, q.Copy = bawn.Command, true
	if d := p.Decide(q); d.Verdict == bawn.Deny {
		t.Errorf("a command that writes .envrc on a copy: %+v", d)
	}
}

// TestLogins: what only a home directory's programs execute is a file as others below the
// top of a workspace that holds none, and nowhere else.
func TestLogins(t *testing.T) {
	p := must(New(nil, Options{}))
	for file, deep := range map[string]bool{
		tableProject + "/test/home/.bashrc": true, tableProject + "/a/.config/fish/config.fish": true, tableProject + "/A/.ZSHRC": true,
		tableProject + "/.bashrc": false, tableProject + "/.config/fish/config.fish": false, tableProject + "/a/.vscode/tasks.json": false, tableProject + "/a/.envrc": false,
		tableProject + "/a/.gitconfig": false, tableProject + "/a/.ssh/config": false, "/home/ada/.bashrc": false, "/home/ada/other/a/.bashrc": false, "/srv/a/.bashrc": false,
	} {
		q := fileQuestion(bawn.Write, file)
		if v := p.Decide(q).Verdict; v != bawn.Deny {
			t.Errorf("%s, in a workspace that may hold a home directory: %v", file, v)
		}
		q.Project = true
		if v := p.Decide(q).Verdict; deep == (v == bawn.Deny) {
			t.Errorf("%s: %v", file, v)
		}
	}
	q := fileQuestion(bawn.Write, "/home/ada/.local/bin/deep/x")
	q.Workspace, q.Project = "/home/ada/.local/bin", true
	if v := p.Decide(q).Verdict; v != bawn.Deny {
		t.Errorf("in a workspace of a protected name: %v", v)
	}
}

// TestWildcards: a wildcard that may reach a plain name asks where no kernel refuses it,
// and one that may reach another is refused.
func TestWildcards(t *testing.T) {
	p := must(New(nil, Options{}))
	for line, want := range map[string][2]bawn.Verdict{
		"touch *.toml": {bawn.Ask, bawn.Allow}, "touch mise.tom?": {bawn.Ask, bawn.Allow}, "touch .np*rc": {bawn.Deny, bawn.Deny}, "touch *.go": {bawn.Ask, bawn.Allow},
	} {
		for i, contained := range []bool{false, true} {
			q := fileQuestion(bawn.Exec, line)
			q.Action.Kind, q.Contained = bawn.Command, within(contained)
			if d := p.Decide(q); d.Verdict != want[i] {
				t.Errorf("%q, contained %t: %v by %q; want %v", line, contained, d.Verdict, d.Rule, want[i])
			}
		}
	}
}
