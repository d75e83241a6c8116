package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
)

// parentEnd is the descriptor over which a child session learns of its parent,
// and of the parent's end.
const parentEnd = 3

// maxParentage bounds what is read from it.
const maxParentage = 4 << 20

// A parentage is what a session that a guest has started must not exceed.
type parentage struct {
	Session   bawn.Session // with every path as links lead to it
	Open      []string     // credentials that the parent may read
	Protected []string
	Guarded   []string     // what an agent obeys
	Places    []bawn.Mount // of the host, as the parent's plan has them
	Git       []sandbox.GitDir
	GitPool   string   // where the git directories of repositories are that the guests make
	Zone      string   // of a split session of which the parent is a part, else ""
	Models    []string // of that session; their secrets are of its other zone
	Depth     int      // of the child: 1 for that of a session which a human has started
	Tree      string   // begins the names of what counts the sessions of the tree
	Dir       string   // where the guest is
	Environ   []string // the guest's
	SetEnv    []string // that the command was judged with
	Asks      string   // socket at which the child's questions are put
	CanAsk    bool
	Plugin    bool // the first session is a plugin's, which has no plugins itself
}

// becomeChild reads the parentage.
func (e *Env) becomeChild() error {
	notForHumans := usageError("leave out --child", "--child is for bawn itself")
	unix.CloseOnExec(parentEnd)
	f := os.NewFile(parentEnd, "parent")
	if f == nil {
		return notForHumans
	}
	dec := json.NewDecoder(io.LimitReader(f, maxParentage))
	dec.DisallowUnknownFields()
	var k parentage
	if err := dec.Decode(&k); err != nil || k.Session.ID == "" || k.Depth < 1 {
		return usageError("leave out --child", "--child is for bawn itself: %v", err)
	}
	e.child, e.parent, e.Dir = &k, f, k.Dir
	return nil
}

// life returns a context that ends with the session's parent, if it has one.
func (e *Env) life() context.Context {
	ctx := context.Background()
	if e.parent == nil {
		return ctx
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, e.parent)
		end(errors.Join(errors.New("the session that started this one has ended"), err))
	}()
	return ctx
}

// guestEnviron is the environment from which the isolation chooses.
func (e *Env) guestEnviron() []string {
	if e.child != nil {
		return e.child.Environ
	}
	return e.Environ
}

// clamp makes a session no freer than its parent. known is what the providers
// of both enforce here.
func (k *parentage) clamp(asked bawn.Session, known session.Providers) (bawn.Session, []session.Narrowed, error) {
	names, unseen := k.lead(&asked.Isolation)
	given, narrowed, err := known.Meet(k.Session, asked)
	if err != nil {
		return bawn.Session{}, nil, &Error{Code: ExitDenied, Err: fmt.Errorf("this session can't be started from within session %s: %w", k.Session.ID, err)}
	}
	if given.Isolation.Workspace == "" {
		return bawn.Session{}, nil, k.outside()
	}
	return given, asWritten(append(unseen, narrowed...), names), nil
}

// clamp makes a session no freer than its parent, says what was asked for and
// is not given, and returns the provider that is to be taken then.
func (f *runFlags) clamp(e *Env, s bawn.Session, asked choice) (bawn.Session, choice, error) {
	if e.child == nil {
		return s, asked, nil
	}
	parent, err := asked.from.get(e.child.Session.Provider)
	if err != nil {
		return s, asked, err
	}
	s, narrowed, err := e.child.clamp(s, session.Providers{asked.Name(): asked.Capabilities(), parent.Name(): parent.Capabilities()})
	f.sayNarrowed(e, narrowed)
	if err == nil && s.Provider == parent.Name() && asked.Name() != parent.Name() {
		asked = asked.from.take(parent, whyParent, nil)
	}
	return s, asked, err
}

// outside is the one answer for every directory that the parent does not work
// on, so that it does not tell which of them exist.
func (k *parentage) outside() error {
	return &Error{Code: ExitDenied, Err: fmt.Errorf("the directory is none that session %s works on", k.Session.ID), Hint: "start it in the workspace"}
}

// directory is where links lead, of what the parent sees and works on.
func (k *parentage) directory(asked string) (string, error) {
	dir := ledTo(asked, k.sees)
	if !k.sees(dir) || !fspath.Below(dir, k.Session.Isolation.Workspace) || !isDir(dir) {
		return "", k.outside()
	}
	return dir, nil
}

// sees reports whether the parent's guest sees a place of the host. What was asked
// to be the parent's own below it, or hidden, is no less to be seen: the child does
// not get it either (see verify).
func (k *parentage) sees(p string) bool {
	places := slices.DeleteFunc(slices.Clone(k.Places), func(m bawn.Mount) bool {
		if m.Path == p || !fspath.Below(m.Path, p) {
			return false
		}
		return m.Access == bawn.Hidden || m.Access == bawn.Private && (k.keeps(m.Path) || k.hasGit(m.Path))
	})
	return len(session.Exceeds(places, []bawn.Mount{{Path: p, Access: bawn.ReadOnly}})) == 0
}

// keeps reports whether the parent's isolation makes a place its own.
func (k *parentage) keeps(p string) bool {
	return slices.ContainsFunc(k.Session.Isolation.Mounts, func(m bawn.Mount) bool { return m.Path == p && m.Access == bawn.Private })
}

// lead makes every path of an isolation what links lead to now, and takes out
// the mounts that would show what the parent does not see, whether it is there
// or not. names has the mounts as they were written.
func (k *parentage) lead(iso *bawn.Isolation) (names map[string]string, unseen []session.Narrowed) {
	names = map[string]string{}
	mounts := iso.Mounts
	*iso = led(*iso, k.sees)
	for i, m := range iso.Mounts {
		names[m.Path] = mounts[i].Path
	}
	iso.Mounts = slices.DeleteFunc(iso.Mounts, func(m bawn.Mount) bool {
		if m.Access == bawn.Hidden || k.sees(m.Path) {
			return false
		}
		unseen = append(unseen, session.Narrowed{Attribute: "mounts", Path: m.Path, Asked: m.Path + " " + m.Access.String(), Why: "the session that starts this one has less"})
		return true
	})
	return names, unseen
}

// asWritten keeps only the requested places that were not given, under the names
// that the request used. The guest must not learn where a link leads that it can't
// see.
func asWritten(list []session.Narrowed, names map[string]string) []session.Narrowed {
	for i, n := range list {
		list[i].Asked = names[n.Path] + strings.TrimPrefix(n.Asked, n.Path)
	}
	return slices.DeleteFunc(list, func(n session.Narrowed) bool { return n.Path != "" && names[n.Path] == "" })
}

// led returns the isolation with every path as links lead to it now, as far as
// they are seen.
func led(iso bawn.Isolation, sees func(p string) bool) bawn.Isolation {
	w := way{sees: sees, links: map[string]string{}}
	iso.Workspace = w.to(iso.Workspace)
	iso.Mounts, iso.CacheDirs = slices.Clone(iso.Mounts), slices.Clone(iso.CacheDirs)
	for i := range iso.Mounts {
		iso.Mounts[i].Path = w.to(iso.Mounts[i].Path)
	}
	for i, dir := range iso.CacheDirs {
		iso.CacheDirs[i] = w.to(dir)
	}
	return iso
}

// all is seen by who started the first session.
func all(string) bool { return true }

// maxLinks is how many links are followed on one way (path_resolution(7)).
const maxLinks = 40

// ledTo is where a path leads, whether there is something or not.
func ledTo(p string, sees func(p string) bool) string {
	return way{sees: sees, links: map[string]string{}}.to(p)
}

// A way finds where paths lead. No link is looked at that is not seen: a guest
// must not learn what is there by the way that its own links take. Many paths
// begin with the same directories, so each is looked at once.
type way struct {
	sees  func(p string) bool
	links map[string]string // where what was looked at leads; "" for what is no link
}

func (w way) to(p string) string {
	if !filepath.IsAbs(p) {
		return p // nothing that could be compared
	}
	at, rest := "/", strings.Split(filepath.Clean(p), "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		to := ""
		if links < maxLinks {
			to = w.link(next)
		}
		switch {
		case to == "":
			at = next
		case filepath.IsAbs(to):
			at, rest = "/", append(strings.Split(to, "/"), rest...)
			links++
		default:
			rest = append(strings.Split(to, "/"), rest...)
			links++
		}
	}
	return at
}

// link is what a link says that is seen, and "" for anything else.
func (w way) link(p string) string {
	to, known := w.links[p]
	if !known {
		if w.sees(p) {
			to, _ = os.Readlink(p) // "" if p is not a link
		}
		w.links[p] = to
	}
	return to
}

// narrow applies to a request what an isolation does not say.
func (k *parentage) narrow(req *sandbox.Request) {
	if k == nil {
		return
	}
	req.Open, req.Protected = session.Open(k.Open, req.Open), session.Protected(k.Protected, req.Protected)
	req.Guarded, req.SetEnv = k.Guarded, append(req.SetEnv, k.SetEnv...)
}

// verify refuses a plan that shows or writes of the host what the parent's
// does not: between two looks at a path, a guest can make a link of it.
func (k *parentage) verify(p sandbox.Plan) error {
	if k == nil {
		return nil
	}
	more := slices.DeleteFunc(session.Exceeds(k.Places, p.Places()), gone)
	if len(more) == 0 && p.Provider() == k.Session.Provider {
		return nil
	}
	what := "a place of the host"
	for _, place := range more {
		if k.sees(place) {
			what = fmt.Sprintf("%q", place)
		}
	}
	return &Error{Code: ExitDenied, Err: fmt.Errorf("this session would have more of %s than session %s has", what, k.Session.ID)}
}

// gone reports whether nothing is at a path any more. What the parent's plan
// hides or protects can't be removed by its guest, but by others.
func gone(p string) bool {
	_, err := os.Lstat(p)
	return errors.Is(err, fs.ErrNotExist)
}

// told is what a guest is told of the end of a session of its own: why a program
// was not found says what the host has that it does not see.
func (k *parentage) told(err error) error {
	var absent *sandbox.NotFoundError
	if k == nil || !errors.As(err, &absent) {
		return err
	}
	code := ExitDenied
	if errors.Is(absent.Err, unix.ENOENT) {
		code = ExitNotFound
	}
	return &Error{Code: code, Err: fmt.Errorf("%s: %w", redact.Visible(absent.Name), absent.Err), Hint: "name a program that this session sees"}
}

// zone is the part of a split session that a child of it belongs to.
func (k *parentage) zone() zone {
	if k == nil {
		return zone{}
	}
	return zone{name: k.Zone, models: k.Models}
}

// desk reaches the humans of the parent: nobody is asked at a terminal that a
// guest holds.
func (k *parentage) desk(id string) func(context.Context, bool) (approval.Desk, error) {
	return func(ctx context.Context, _ bool) (approval.Desk, error) {
		if k.Asks == "" {
			return nil, errors.New("the session above can't be asked")
		}
		return link.Dial(ctx, link.Options{Path: k.Asks, Session: id, Parent: k.Session.ID})
	}
}

// askedBy says by which flags an attribute is asked for (session.Narrowed).
var askedBy = map[string][]string{
	"mode": {"mode"}, "provider": {"provider"}, "mounts": {"rw", "ro"}, "network": {"net", "allow", "http", "git", "host-port", "secret", "ssh-agent"},
	"egress": {"allow", "http", "git"}, "egress.host_ports": {"host-port"}, "egress.ports": {"publish"}, "egress.secrets": {"secret"},
	"egress.ssh_agent": {"ssh-agent"}, "egress.ask": {"ask-timeout"}, "env": {"env"}, "devices": {"device"}, "cpus": {"cpus"}, "memory_mb": {"memory"},
	"pids_limit": {"pids"}, "timeout": {"timeout"},
}

// sayNarrowed tells a guest what it has asked for and not got. What only the
// configuration says is no news to it.
func (f *runFlags) sayNarrowed(e *Env, list []session.Narrowed) {
	for _, n := range list {
		if !slices.ContainsFunc(askedBy[n.Attribute], func(name string) bool { return f.changed(name) || f.changed("profile") || f.changed("as") }) {
			continue
		}
		text := fmt.Sprintf("%s: asked for %s, given %s", n.Attribute, n.Asked, n.Given)
		if n.Given == "" {
			text = fmt.Sprintf("%s: %s is not given", n.Attribute, n.Asked)
		}
		f.note(e, strings.TrimSpace(text+" ("+n.Why+")"))
	}
}
