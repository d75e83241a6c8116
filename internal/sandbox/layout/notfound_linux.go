package layout

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// NotFound finds out why a command, with its environment and directory, could
// not be executed, for a guest that sees the host's files as the plan's mounts
// say. It looks at the host through those, so that it needs no running guest,
// and decides nothing: the kernel has refused already.
func NotFound(p *Plan, c sandbox.Command, errno unix.Errno) *sandbox.NotFoundError {
	name := c.Argv[0]
	nf := &sandbox.NotFoundError{Name: name, Err: errno}
	var hidden *view
	for _, candidate := range Candidates(name, c.Dir, LookupEnv(c.Env, "PATH")) {
		v := p.see(candidate)
		switch {
		case v.info == nil:
		case v.info.IsDir() && strings.Contains(name, "/"):
			nf.Why, nf.Remedy = "is a directory", "name a program in it"
			return nf
		case v.info.IsDir():
		case v.by == nil:
			nf.Why, nf.Remedy = p.unfit(v, errno)
			return nf
		case hidden == nil:
			hidden = &v
		}
	}
	switch {
	case errno != unix.ENOENT && errno != unix.ENOTDIR && errno != unix.EACCES: // too long, too many links, …
	case hidden != nil:
		nf.Absent = true
		nf.Why, nf.Remedy = fmt.Sprintf("%s is there on the host, but not in the sandbox", hidden.path), hidden.remedy()
	case strings.Contains(name, "/") && errno == unix.EACCES:
		nf.Remedy = "a directory on the way to it may not be entered"
	default:
		nf.Absent = true
		nf.Why, nf.Remedy = absent(name, c)
	}
	return nf
}

// absent says what to do about a program that does not exist.
func absent(name string, c sandbox.Command) (why, remedy string) {
	_, err := os.Stat(path.Join(c.Dir, name))
	switch {
	case strings.ContainsAny(name, " \t;|&<>$"):
		remedy = "a line of shell needs a shell: bawn run -- sh -c '…'"
	case strings.Contains(name, "/"):
		remedy = "relative paths start in " + c.Dir
	case err == nil:
		remedy = "did you mean ./" + name
	default:
		remedy = "install it, give its whole path, or add its directory to PATH, which is " + searchPathOr(LookupEnv(c.Env, "PATH"))
	}
	if strings.Contains(name, "/") {
		return "no such file", remedy
	}
	return "not found in PATH", remedy
}

// A view is a path's target.
type view struct {
	path string      // without symbolic links, where it exists
	info fs.FileInfo // nil where the host has nothing
	by   *Mount      // what hides it from the guest, or nil
}

// see looks at a path as the guest would.
func (p *Plan) see(name string) view {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return view{path: name}
	}
	v := view{path: real}
	m := p.covering(real)
	source := real
	switch {
	case m == nil:
	case m.Kind == KindBind || m.Kind == KindBindRO || m.Kind == KindCopy:
		source = m.Source + strings.TrimPrefix(real, m.Target)
	case m.Kind != KindRoot:
		v.by = m
	}
	if v.info, err = os.Stat(source); err != nil {
		v.info = nil
	}
	return v
}

// covering returns the mount that decides on an absolute path.
func (p *Plan) covering(name string) *Mount {
	var best *Mount
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if (m.Target == name || Below(name, m.Target)) && (best == nil || len(m.Target) >= len(best.Target)) {
			best = m
		}
	}
	return best
}

// remedy says how to show the guest a file that a mount hides.
func (v *view) remedy() string {
	show := path.Dir(v.path)
	if show == v.by.Target {
		show = v.path
	}
	switch {
	case v.by.Kind == KindTmpfs:
		return fmt.Sprintf("%s is the session's own; --ro %s shows the host's", v.by.Target, show)
	case v.by.Why == "credentials":
		return fmt.Sprintf("%s holds credentials, which no session sees; copy the program elsewhere", v.by.Target)
	case strings.HasPrefix(v.by.Why, "--"):
		return fmt.Sprintf("%s hides %s", v.by.Why, v.by.Target)
	case v.by.Why != "":
		return fmt.Sprintf("%s is hidden: %s", v.by.Target, v.by.Why)
	}
	return fmt.Sprintf("%s is not the host's in a session", v.by.Target)
}

// unfit says why the kernel does not execute a file that the guest sees.
func (p *Plan) unfit(v view, errno unix.Errno) (why, remedy string) {
	head := beginning(v.path)
	script := strings.HasPrefix(head, "#!")
	switch {
	case !v.info.Mode().IsRegular():
		return "is no regular file", "name a program"
	case v.info.Mode()&0o111 == 0:
		if m := p.covering(v.path); m != nil && (m.Kind == KindBind || m.Kind == KindCopy && !m.ReadOnly) {
			return "the file is not executable", "chmod +x " + v.path
		}
		return "the file is not executable", "name a program"
	case errno == unix.ENOEXEC:
		return wrongFormat(head, v.path)
	case script && (errno == unix.ENOENT || errno == unix.EACCES || errno == unix.ENOTDIR):
		if why, remedy = p.interpreter(head); why != "" {
			return why, remedy
		}
	case errno == unix.ENOENT:
		return p.loader(head)
	}
	if errno == unix.EACCES {
		return p.forbidden(v)
	}
	return "", ""
}

// forbidden says why the kernel denies to execute a file with execute bits.
func (p *Plan) forbidden(v view) (why, remedy string) {
	var st unix.Statfs_t
	if unix.Statfs(v.path, &st) == nil && st.Flags&unix.ST_NOEXEC != 0 {
		return "permission denied: its file system is mounted noexec", "copy it into the workspace"
	}
	if p.Rung == RungLandlock {
		return "permission denied", "provider \"landlock\" may not let the session read it: \"bawn run --plan\" lists what it may"
	}
	return "permission denied", "its mode does not let you execute it, or a directory on the way may not be entered: ls -l " + v.path
}

// interpreter judges a script's first line, "#! interpreter [argument]"
// (execve(2)). It returns "" where that is in order.
func (p *Plan) interpreter(head string) (why, remedy string) {
	line, _, _ := strings.Cut(strings.TrimPrefix(head, "#!"), "\n")
	if strings.HasSuffix(line, "\r") {
		return "its first line ends with a carriage return", "save it with the line ends of Unix"
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return "its first line names no interpreter", "write \"#!/bin/sh\" there, for example"
	}
	if !path.IsAbs(words[0]) {
		return "", "" // from the working directory, which is unknown
	}
	switch v := p.see(words[0]); {
	case v.info == nil:
		return fmt.Sprintf("its interpreter %q does not exist", words[0]), "install it, or mend the script's first line"
	case v.by != nil:
		return fmt.Sprintf("its interpreter %q is not in the sandbox", words[0]), v.remedy()
	case v.info.IsDir() || v.info.Mode()&0o111 == 0:
		return fmt.Sprintf("its interpreter %q is not executable", words[0]), "mend the script's first line"
	}
	return "", ""
}

// beginning returns the first bytes of a file, or "".
func beginning(name string) string {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 4096)
	n, _ := f.Read(buf) // an unreadable file explains nothing
	return string(buf[:n])
}

// searchPathOr returns PATH, or what counts where it is not set.
func searchPathOr(searchPath string) string {
	if searchPath == "" {
		return "/usr/local/bin:/usr/bin:/bin"
	}
	return searchPath
}

// Candidates are the paths execvp(3) would try for a command.
func Candidates(name, dir, searchPath string) []string {
	if strings.Contains(name, "/") {
		if path.IsAbs(name) {
			return []string{name}
		}
		return []string{dir + "/" + name}
	}
	var list []string
	for _, d := range strings.Split(searchPathOr(searchPath), ":") {
		if !path.IsAbs(d) {
			d = path.Join(dir, d)
		}
		list = append(list, d+"/"+name)
	}
	return list[:min(len(list), 60)]
}
