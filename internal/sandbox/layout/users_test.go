package layout

import (
	"strconv"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

const hostUsers = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nada:x:1000:1000:Ada:/home/ada:/bin/zsh\n+::::::\n"

// TestGuestsEntry: the guest's user has its home and a shell, all other entries stay,
// and nothing is shown where the host says the same.
func TestGuestsEntry(t *testing.T) {
	const rest = "root:x:0:0:root:/root:/bin/bash\n"
	for name, c := range map[string]struct {
		user        User
		first, with string // "" for no list of its own
	}{
		"the host says so":        {User{UID: 1000, GID: 1000, Home: "/home/ada", Shell: "/bin/sh"}, "", ""},
		"root's guest":            {User{UID: 65534, GID: 65534, Home: "/root", Shell: "/bin/bash"}, "nobody:x:65534:65534:nobody:/root:/bin/bash", rest},
		"another home":            {User{UID: 1000, GID: 1000, Home: "/srv/h", Shell: "/bin/sh"}, "ada:x:1000:1000:Ada:/srv/h:/bin/zsh", rest},
		"a user of a directory":   {User{UID: 7000, GID: 7001, Name: "grace", Home: "/home/grace", Shell: "/bin/sh"}, "grace:x:7000:7001::/home/grace:/bin/sh", "ada:x:1000"},
		"a name that is taken":    {User{UID: 7000, GID: 7001, Name: "root", Home: "/h", Shell: "/bin/sh"}, "root-:x:7000:7001::/h:/bin/sh", rest},
		"no name":                 {User{UID: 7000, GID: 7001, Name: "A B:0", Home: "/h", Shell: "/bin/sh"}, "guest:x:7000:7001::/h:/bin/sh", rest},
		"a home that ends a line": {User{UID: 7000, GID: 7001, Home: "/h\nevil:x:0:0::/:/bin/sh", Shell: "/bin/sh"}, "", ""},
		"a home of two fields":    {User{UID: 7000, GID: 7001, Home: "/h:/x", Shell: "/bin/sh"}, "", ""},
		"no home":                 {User{UID: 7000, GID: 7001, Home: ".", Shell: "/bin/sh"}, "", ""},
		"a shell of two fields":   {User{UID: 7000, GID: 7001, Home: "/h", Shell: "/bin/sh:x"}, "", ""},
	} {
		got, needed := c.user.Passwd(hostUsers)
		first, after, _ := strings.Cut(got, "\n")
		if needed != (c.first != "") || first != c.first || !strings.Contains(after, c.with) || needed && !strings.HasSuffix(got, "+::::::\n") {
			t.Errorf("%s: %v, %q", name, needed, got)
		}
	}
	if u := UserInside(hostUsers, 0, 0); u.UID != 65534 || u.GID != 65534 {
		t.Errorf("root is %+v inside", u)
	}
	group := User{UID: 7000, GID: 7001, Name: "staff"}
	if got, needed := group.Group("staff:x:50:\nada:x:1000:\n"); !needed || got != "staff-:x:7001:\nstaff:x:50:\nada:x:1000:\n" {
		t.Errorf("the groups are %v, %q", needed, got)
	}
	if _, needed := group.Group("x:x:7001:ada\n"); needed {
		t.Error("a group that has a name is named again")
	}
}

// FuzzGuestsEntry: whatever the host's list, the guest's entry is the first and has
// seven fields, and no entry is new but that.
func FuzzGuestsEntry(f *testing.F) {
	f.Add(hostUsers, 1000, "ada", "/srv/h", "/bin/sh")
	f.Add(":x:1:\n\nx:x:1:1::/:", 1, "", "/", "/")
	f.Fuzz(func(t *testing.T, text string, uid int, name, home, shell string) {
		got, needed := User{UID: uid, GID: uid, Name: name, Home: home, Shell: shell}.Passwd(text)
		if !needed {
			return
		}
		first, after, _ := strings.Cut(got, "\n")
		if fields := strings.Split(first, ":"); len(fields) != 7 || fields[2] != strconv.Itoa(uid) && entryOf(text, uid, 7) == nil || fields[5] != home {
			t.Errorf("the entry is %q", first)
		}
		for line := range strings.Lines(after) {
			if !strings.Contains(text, line) {
				t.Errorf("%q is new", line)
			}
		}
	})
}

// TestUsersAreShown: the lists lie on the host's files, where the guest would read
// those; what is hidden stays so.
func TestUsersAreShown(t *testing.T) {
	host := machine{"/", "/srv/", "/srv/p/", "/home/", "/home/ada/", "/etc/", "/etc/passwd", "/etc/group", "/run/", "/own/", "/own/users"}
	plan := func(mounts ...bawn.Mount) (targets []string, again map[string]string) {
		t.Helper()
		p, err := Layout(sandbox.Request{
			Session: bawn.Session{Isolation: bawn.Isolation{Workspace: "/srv/p", Mounts: mounts}}, Dir: "/srv/p", Home: "/home/ada",
			Users: []sandbox.File{{Source: "/own/users", Target: "/etc/passwd"}, {Source: "/own/gone", Target: "/etc/group"}},
		}, host.facts(1000))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.Mounts {
			if m.Why == WhyUsers {
				targets = append(targets, m.Kind+" "+m.Source+" "+m.Target)
			}
		}
		return targets, p.Again()
	}
	got, again := plan()
	if want := "bind-ro /own/users /etc/passwd, bind-ro /own/users /run/bawn/users/passwd"; strings.Join(got, ", ") != want || len(again) != 1 || again["/etc/passwd"] != "/run/bawn/users/passwd" {
		t.Errorf("shown are %q, and again %q", got, again)
	}
	for _, hidden := range []string{"/etc", "/etc/passwd"} {
		if got, again := plan(bawn.Mount{Path: hidden, Access: bawn.Hidden}); len(got) > 0 || len(again) > 0 {
			t.Errorf("with %q hidden: %q, %q", hidden, got, again)
		}
	}
}
