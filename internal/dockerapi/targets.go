package dockerapi

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// enginePlaces are where an engine mounts something itself. Each has to be in
// the container what its name says, or it would be mounted elsewhere.
var enginePlaces = []string{"/proc", "/sys", "/dev", hostsFile, "/etc/resolv.conf", "/etc/hostname", initProgram}

const initProgram = "/sbin/docker-init"

// addImage adds what the image says: its volumes, which the engine mounts as
// well, and the directory that a process starts in.
func (w *wanted) addImage(image *imageFacts) error {
	for _, target := range slices.Sorted(maps.Keys(image.Config.Volumes)) {
		if err := checkTarget(target); err != nil {
			return ofImage(err)
		}
		if clean := path.Clean(target); !slices.Contains(w.targets, clean) {
			w.targets = append(w.targets, clean)
		}
	}
	if len(w.targets) > maxMounts {
		return refuse(RuleLimit, "", "more than %d mounts, those of the image among them", maxMounts)
	}
	if err := checkDir(image.Config.WorkingDir); err != nil {
		return ofImage(err)
	}
	w.dir = cmp.Or(w.body.WorkingDir, image.Config.WorkingDir)
	return w.checkNested()
}

// mirrors reports whether a directory of the guest's is to be mounted at a place, to be
// written.
func (w *wanted) mirrors(target string) bool {
	return slices.ContainsFunc(w.mounts, func(m mountRequest) bool { return m.Target == target && m.Type == typeBind && !m.ReadOnly })
}

// ofImage says that the image is what is refused.
func ofImage(err error) error {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		r.Reason, r.Remedy = "the image says so: "+r.Reason, "use another image"
	}
	return err
}

// checkNested refuses a mount within another: who writes the outer one chooses where the
// inner one goes. Within a mirror there may be some: what it holds is only written while
// the container runs, which is over when the mounts' places are looked at.
func (w *wanted) checkNested() error {
	for _, inner := range w.targets {
		for _, outer := range w.targets {
			if inner != outer && within(inner, outer) && !w.mirrors(outer) {
				return refuse(RuleMount, "mount them beside each other", "the mount at %.200q is within the one at %.200q", inner, outer)
			}
		}
	}
	return nil
}

// look checks that every mount point in a container, and its working directory,
// is where its name says: no link is on the way. The container must be at rest
// until it has started.
func (e *engine) look(ctx context.Context, id string, targets []string, dir string) error {
	l := looker{engine: e, id: id, known: map[string]bool{}}
	for _, p := range slices.Concat(enginePlaces, targets) {
		if p == initProgram {
			continue
		}
		if err := l.walk(ctx, p, true); err != nil {
			return err
		}
	}
	if err := l.walkInit(ctx, targets); err != nil {
		return err
	}
	if dir == "" {
		return nil
	}
	return l.walk(ctx, path.Clean(dir), false)
}

// A looker walks through the files of a container.
type looker struct {
	engine *engine
	id     string
	known  map[string]bool // directories, and places where nothing is (false)
}

// walk follows p from the root. What is not there the engine makes. The last
// part may be a file, on which one is mounted.
func (l *looker) walk(ctx context.Context, p string, file bool) error {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	for i := range parts {
		at := "/" + strings.Join(parts[:i+1], "/")
		there, seen := l.known[at]
		if !seen {
			s, err := l.engine.stat(ctx, l.id, at)
			if err != nil {
				return err
			}
			if err := s.check(at, file && at == p); err != nil {
				return err
			}
			there = s.there
			l.known[at] = there
		}
		if !there {
			return nil
		}
	}
	return nil
}

// walkInit follows the place of the engine's own init. In most images /sbin is a
// link into /usr, which is a place as good as any if nothing is mounted there.
func (l *looker) walkInit(ctx context.Context, targets []string) error {
	dir := path.Dir(initProgram)
	s, err := l.engine.stat(ctx, l.id, dir)
	if err != nil {
		return err
	}
	to := s.resolved(dir)
	mounted := slices.ContainsFunc(targets, func(t string) bool { return within(to, t) })
	if to == dir || !oneOf(to, "/usr/sbin", "/usr/bin") || mounted {
		return l.walk(ctx, initProgram, true)
	}
	return l.walk(ctx, path.Join(to, path.Base(initProgram)), true)
}

// fileStat is what the engine says of a file of a container, links not followed.
type fileStat struct {
	there bool
	mode  fs.FileMode
	to    string // where a link leads; Podman says so of every file
}

// check says whether a mount may go through what is at p, or to it.
func (s fileStat) check(p string, file bool) error {
	switch {
	case !s.there:
		return nil
	case s.mode&fs.ModeSymlink != 0 || s.resolved(p) != p:
		return refuse(RuleMount, "name the place that it leads to", "%.200q is a link in the container", p)
	case s.mode.IsDir() || file:
		return nil
	}
	return refuse(RuleMount, "choose another place", "%.200q is not a directory in the container", p)
}

// resolved is where p leads: Docker says so of links, all of them followed.
func (s fileStat) resolved(p string) string {
	if s.to == "" {
		return p
	}
	return path.Clean(s.to)
}

const statHeader = "X-Docker-Container-Path-Stat"

// stat asks for one file of a container.
func (e *engine) stat(ctx context.Context, id, p string) (fileStat, error) {
	ctx, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	m := message{method: http.MethodHead, path: "/containers/" + id + "/archive", query: url.Values{"path": {p}}}
	resp, err := e.stream(ctx, m)
	if gone(err) {
		return fileStat{}, nil
	}
	if err != nil {
		return fileStat{}, err
	}
	defer resp.Body.Close()
	var said struct {
		Mode       *fs.FileMode `json:"mode"`
		LinkTarget string       `json:"linkTarget"`
	}
	text, err := base64.StdEncoding.DecodeString(resp.Header.Get(statHeader))
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil || said.Mode == nil {
		return fileStat{}, refuse(RuleEngine, "", "the engine does not say what %.200q is in the container", p)
	}
	return fileStat{there: true, mode: *said.Mode, to: said.LinkTarget}, nil
}
