package layout

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// The host's lists of users and groups.
const (
	PasswdFile = "/etc/passwd"
	GroupFile  = "/etc/group"
)

// WhyUsers marks the mounts of Request.Users: the host's lists of users and groups
// with the guest's own entry.
const WhyUsers = "the guest's own entry"

// usersInside is where the guest has the same files a second time, for the mount
// refresher.
const (
	runBawn     = "/run/bawn"
	usersInside = runBawn + "/users/"
)

// users are the mounts of Request.Users, on places where the guest reads the host's
// file. A file that is missing, hidden or written is left as it is.
func (b *builder) users(all []Mount) (list []Mount) {
	for _, f := range b.req.Users {
		source, ok := b.facts.Own(f.Source)
		target, there := b.facts.Lookup(f.Target)
		if !ok || !there || source.Dir || target.Dir {
			continue
		}
		for _, at := range []string{target.Real, usersInside + path.Base(f.Target)} {
			in := innermost(all, at)
			if own := in.Kind == KindTmpfs && Below(at, runBawn); !own && in.Kind != KindRoot && (in.Kind != KindBindRO || in.Source != in.Target) {
				break
			}
			list = append(list, Mount{Kind: KindBindRO, Source: source.Real, Target: at, Why: WhyUsers, File: true, ID: source.ID})
		}
	}
	return list
}

// Again says with what a replaced place is covered anew, if not with an empty file: with
// a file that the guest also has elsewhere.
func (p *Plan) Again() map[string]string {
	again := map[string]string{}
	for i, m := range p.Mounts {
		if m.Why == WhyUsers && Below(m.Target, runBawn) {
			again[p.Mounts[i-1].Target] = m.Target
		}
	}
	return again
}

// A User is a guest's, by the ids that it has inside.
type User struct {
	UID, GID    int
	Name        string // if the host has none for the UID
	Home, Shell string // absolute
}

// UserInside is who a user of the host is inside, by a passwd(5): root is nobody there.
func UserInside(text string, uid, gid int) User {
	if uid == 0 {
		uid, gid = nobodyOf(text)
	}
	return User{UID: uid, GID: gid}
}

// Passwd is text, a passwd(5), with the user's entry first; false where text says the
// same already, or the entry can't be written.
func (u User) Passwd(text string) (string, bool) {
	shell, old := u.Shell, entryOf(text, u.UID, 7)
	if old != nil && fits(old[6]) && !slices.Contains(noShells, path.Base(old[6])) {
		shell = old[6]
	}
	switch {
	case !fits(u.Home) || !fits(shell):
		return "", false
	case old == nil:
		return entry(freeName(text, u.Name), "x", strconv.Itoa(u.UID), strconv.Itoa(u.GID), "", u.Home, shell) + text, true
	case path.Clean(old[5]) == u.Home && old[6] == shell:
		return "", false
	}
	return entry(old[0], "x", old[2], old[3], old[4], u.Home, shell) + without(text, old[0]), true
}

// noShells are the shells in a passwd(5) of users who can't log in.
var noShells = []string{"nologin", "false"}

// Group is Passwd for a group(5): it adds the user's group where text has no name for
// it.
func (u User) Group(text string) (string, bool) {
	if entryOf(text, u.GID, 4) != nil {
		return "", false
	}
	return entry(freeName(text, u.Name), "x", strconv.Itoa(u.GID), "") + text, true
}

// entryOf finds the first entry with an id, or nil.
func entryOf(text string, id, fields int) []string {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) != fields || f[0] == "" {
			continue
		}
		if n, err := strconv.Atoi(f[2]); err == nil && n == id {
			return f
		}
	}
	return nil
}

func entry(fields ...string) string { return strings.Join(fields, ":") + "\n" }

// without leaves the entry of a name out.
func without(text, name string) string {
	lines := slices.Collect(strings.Lines(text))
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+":") }), "")
}

// fits reports whether a field can be an absolute path of an entry.
func fits(field string) bool { return path.IsAbs(field) && !strings.ContainsAny(field, ":\n\x00") }

// freeName is a name that programs take for one, and that no entry has.
func freeName(text, name string) string {
	plain := func(r rune) bool { return r < 'a' || r > 'z' }
	for ; name == "" || plain(rune(name[0])) || strings.ContainsFunc(name, func(r rune) bool { return plain(r) && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r) }); name = "guest" {
	}
	for strings.HasPrefix(text, name+":") || strings.Contains(text, "\n"+name+":") {
		name += "-"
	}
	return name
}

// nobodyOf returns the ids that root has inside: those of user "nobody" in a
// passwd(5), so that programs find a name for them.
func nobodyOf(text string) (uid, gid int) {
	const overflow = 65534
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[0] != "nobody" {
			continue
		}
		u, err1 := strconv.Atoi(f[2])
		g, err2 := strconv.Atoi(f[3])
		if err1 == nil && err2 == nil && u > 0 && g > 0 {
			return u, g
		}
	}
	return overflow, overflow
}
