package dockerapi

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn/internal/dockerapi/dockerfile"
)

// copyStep keeps files for the next container of a stage.
func (d *build) copyStep(s *stage, i *dockerfile.Instruction) error {
	list, err := i.Words(s.variables())
	if err != nil {
		return err
	}
	if len(list) < 2 {
		return &dockerfile.Error{Line: i.Line, Why: i.Name + " needs a source and a destination"}
	}
	sources, to := list[:len(list)-1], list[len(list)-1]
	one := fileCopy{from: d.context, into: strings.HasSuffix(to, "/") || strings.HasSuffix(to, "/.") || to == "."}
	if one.uid, one.gid, err = owner(i); err != nil {
		return err
	}
	if !path.IsAbs(to) {
		to = path.Join("/", s.config.WorkingDir, to)
	}
	one.to = path.Clean(to)
	if from := i.Flags["from"]; from != "" {
		if one.from, err = d.filesOf(from, sources); err != nil {
			return err
		}
	}
	if one.names, err = d.found(i, one.from, sources); err != nil {
		return err
	}
	one.into = one.into || len(one.names) > 1
	if within(one.to, "/proc") || within(one.to, "/sys") || within(one.to, "/dev") {
		return &dockerfile.Error{Line: i.Line, Why: fmt.Sprintf("%.200q is the kernel's", one.to)}
	}
	s.copies = append(s.copies, one)
	return nil
}

// found lists what the sources of a COPY or ADD stand for, each name once.
func (d *build) found(i *dockerfile.Instruction, from *fileSet, sources []string) (names []string, err error) {
	seen := map[string]bool{}
	for _, source := range sources {
		if i.Name == "ADD" && addsMore(source) {
			return nil, &dockerfile.Error{Line: i.Line, Why: fmt.Sprintf("ADD of %.100q: addresses are not fetched and archives not unpacked here; use COPY, and RUN", source)}
		}
		found, err := from.match(source)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, &dockerfile.Error{Line: i.Line, Why: fmt.Sprintf("%s: there is no %.200q", i.Name, source)}
		}
		for _, name := range found {
			if !seen[name] {
				seen[name], names = true, append(names, name)
			}
		}
		if err := d.ctx.Err(); err != nil {
			return nil, err
		}
	}
	if d.copies += len(names); d.copies > maxCopies {
		return nil, refuse(RuleLimit, "name directories", "the COPYs of this build stand for more than %d files", maxCopies)
	}
	return names, nil
}

// addsMore reports whether ADD would do more with a source than COPY does.
func addsMore(source string) bool {
	for _, end := range []string{".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".gz", ".bz2", ".xz", ".zst"} {
		if strings.HasSuffix(strings.ToLower(source), end) {
			return true
		}
	}
	return strings.Contains(source, "://") || strings.HasPrefix(source, "git@")
}

// owner reads --chown: numbers, or none.
func owner(i *dockerfile.Instruction) (uid, gid int, err error) {
	text := i.Flags["chown"]
	if text == "" {
		return 0, 0, nil
	}
	u, g, ok := strings.Cut(text, ":")
	if !ok {
		g = u
	}
	a, err1 := strconv.ParseUint(u, 10, 31)
	b, err2 := strconv.ParseUint(g, 10, 31)
	if cmp.Or(err1, err2) != nil {
		return 0, 0, &dockerfile.Error{Line: i.Line, Why: fmt.Sprintf("--chown=%.50s: write numbers, UID:GID", text)}
	}
	return int(a), int(b), nil
}

// filesOf fetches files of an earlier stage, or of an image that is present.
func (d *build) filesOf(name string, sources []string) (*fileSet, error) {
	s := &stage{}
	if before := d.stage(name); before != nil {
		if before == d.stages[len(d.stages)-1] {
			return nil, &stepError{"COPY --from names its own stage"}
		}
		s.image, s.base = before.image, before.base
	} else if err := d.base(s, name); err != nil {
		return nil, err
	}
	argv := []string{"/bin/true"} // it is never started
	c, err := d.container(s, common{Image: s.image, Entrypoint: noEntrypoint, Cmd: argv}, argv)
	if err != nil {
		return nil, err
	}
	defer d.removeChild(c)
	all := &fileSet{of: d.contents, files: map[string]*setFile{}}
	for _, source := range sources {
		if err := d.fetch(c, path.Clean("/"+source), all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// fetch keeps a file or directory of a container under its own name.
func (d *build) fetch(c *child, at string, all *fileSet) error {
	if len(at) > maxPath {
		return tooLong(at)
	}
	for _, k := range kernelPlaces {
		if within(at, k) {
			return &stepError{fmt.Sprintf("%.200q is the kernel's", at)}
		}
	}
	resp, err := d.engine.stream(d.ctx, message{method: http.MethodGet, path: "/containers/" + c.id + "/archive", query: url.Values{"path": {at}}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := d.fileSet(resp.Body)
	if err != nil {
		return err
	}
	for name, f := range got.files {
		_, below, _ := strings.Cut(name, "/")
		name = relative(path.Join(at, below))
		if err := d.contents.name(name); err != nil {
			return err
		}
		all.files[name] = f
	}
	return nil
}
