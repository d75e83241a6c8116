package plugin

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn/internal/netrule"
)

// A checker finds everything that is wrong with a manifest.
type checker struct {
	file  string
	lines map[string]int
	m     *Manifest
	errs  []error
}

func (c *checker) err() error { return errors.Join(c.errs...) }

// refuse notes an error in a key, on its line or that of its table.
func (c *checker) refuse(key, format string, args ...any) {
	line, ok := c.lines[key]
	for k := key; !ok && strings.Contains(k, "."); line, ok = c.lines[k] {
		k = k[:strings.LastIndexByte(k, '.')]
	}
	place := c.file
	if ok {
		place = fmt.Sprintf("%s:%d", c.file, line)
	}
	c.errs = append(c.errs, fmt.Errorf("%s: %s: %s", place, key, fmt.Sprintf(format, args...)))
}

func (c *checker) named(stated string) {
	if stated != "" && stated != c.m.Name {
		c.refuse("name", "it is %q; want %q, as the file is called", cut(stated), c.m.Name)
	}
}

func (c *checker) check() {
	if c.m.Kind != Server && c.m.Kind != Hook {
		c.refuse("kind", "it is %+q; want %q or %q", cut(c.m.Kind), Server, Hook)
	}
	c.line("version", c.m.Version)
	c.line("about", c.m.About)
	c.run()
	c.paths("files.read", c.m.Files.Read)
	c.paths("files.write", c.m.Files.Write)
	c.hosts()
	c.secrets()
	c.env()
	c.globs("tools.allow", c.m.Tools.Allow)
	c.globs("tools.ask", c.m.Tools.Ask)
	c.globs("tools.deny", c.m.Tools.Deny)
	c.arguments()
}

// line wants one line of text that is seen as it is.
func (c *checker) line(key, text string) {
	if len(text) > 300 || strings.ContainsAny(text, "\n\t\r") || checkText(text) != nil {
		c.refuse(key, "it is %+q; want one line of at most 300 bytes without invisible characters", cut(text))
	}
}

func (c *checker) entries(key string, list []string) {
	if len(list) > maxEntries {
		c.refuse(key, "it has %d entries; want at most %d", len(list), maxEntries)
	}
}

// Forms of packages. A version that names one content, and nothing that could
// be taken for a flag, a path or a URL.
var (
	npxForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*@[0-9][0-9A-Za-z.+-]*$`)
	})
	uvxForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(@|==)[0-9][0-9A-Za-z.+!-]*$`)
	})
	goForm    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._~/-]*@v[0-9][0-9A-Za-z.+-]*$`) })
	imageForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([a-z0-9][A-Za-z0-9._:/-]*@)?sha256:[0-9a-f]{64}$`) })
)

func (c *checker) run() {
	r, stated := c.m.Run, 0
	for _, p := range []struct {
		key, value, want string
		form             func() *regexp.Regexp
	}{
		{"run.npx", r.NPX, "PACKAGE@VERSION with the whole version, such as \"server@1.2.3\"", npxForm},
		{"run.uvx", r.UVX, "PACKAGE@VERSION with the whole version", uvxForm},
		{"run.go", r.Go, "PACKAGE@vVERSION with the whole version", goForm},
	} {
		if p.value == "" {
			continue
		}
		if stated++; !p.form().MatchString(p.value) {
			c.refuse(p.key, "it is %+q; want %s", cut(p.value), p.want)
		}
	}
	if len(r.Command) > 0 {
		stated++
	}
	if stated != 1 {
		c.refuse("run", "it states %d of command, npx, uvx and go; want one of them", stated)
	}
	if r.Image != "" && (len(r.Command) == 0 || !imageForm().MatchString(r.Image)) {
		c.refuse("run.image", "it is %+q; want NAME@sha256:DIGEST beside a command", cut(r.Image))
	}
	c.words("run.command", r.Command)
	c.words("run.args", r.Args)
	if len(r.Command) > 0 && (r.Command[0] == "" || r.Command[0][0] == '-') {
		c.refuse("run.command", "it begins with %+q; want a program", cut(r.Command[0]))
	}
}

// words are arguments of a program: anything that can be one.
func (c *checker) words(key string, words []string) {
	c.entries(key, words)
	for _, w := range words {
		if len(w) > 4096 || strings.ContainsRune(w, 0) {
			c.refuse(key, "%+q can't be an argument", cut(w))
		}
	}
}

func (c *checker) paths(key string, paths []string) {
	c.entries(key, paths)
	for _, p := range paths {
		if err := checkPath(p); err != nil {
			c.refuse(key, "%+q: %v", cut(p), err)
		}
	}
}

// checkPath requires a path without ways out of it: it must name what it seems
// to name.
func checkPath(p string) error {
	rest := strings.TrimPrefix(p, "~/")
	switch {
	case p == "." || p == "~":
		return nil
	case p == "" || len(p) > 1024 || checkText(p) != nil || strings.ContainsAny(p, "\n\t\r"):
		return errors.New("want a path without invisible characters")
	case p == "/" || strings.HasPrefix(rest, "~"):
		return errors.New("want a path below \"/\", below \"~\", or relative to the workspace")
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(rest, "/"), "./"), "/") {
		if part == "" || part == "." || part == ".." {
			return errors.New("want it without \"..\", \".\" and empty parts")
		}
	}
	return nil
}

func (c *checker) hosts() {
	c.entries("hosts", c.m.Hosts)
	for _, h := range c.m.Hosts {
		if _, err := netrule.ParseHost(h); err != nil {
			c.refuse("hosts", "%v", err)
		}
	}
}

func (c *checker) secrets() {
	c.entries("secrets", c.m.Secrets)
	for _, s := range c.m.Secrets {
		if s == "" || len(s) > 128 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" || s[0] == '-' {
			c.refuse("secrets", "%+q is no name of a secret; want letters, digits, \".\", \"_\" and \"-\"", cut(s))
		}
	}
}

// env refuses variables with which a plugin's program would be another one, or
// would find another home.
func (c *checker) env() {
	if len(c.m.Env) > maxEntries {
		c.refuse("env", "it has %d entries; want at most %d", len(c.m.Env), maxEntries)
	}
	for _, name := range slices.Sorted(maps.Keys(c.m.Env)) {
		value := c.m.Env[name]
		switch {
		case !variable(name):
			c.refuse("env", "%+q is no name of a variable; want letters, digits and \"_\"", cut(name))
		case name == "HOME" || strings.HasPrefix(name, "BAWN_") || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_"):
			c.refuse("env."+name, "this variable is not the manifest's to set")
		case len(value) > 8192 || strings.ContainsRune(value, 0):
			c.refuse("env."+name, "the value can't be one of a variable")
		}
	}
}

func variable(name string) bool {
	ok := name != "" && len(name) <= 128 && (name[0] < '0' || name[0] > '9')
	for i := range len(name) {
		c := name[i] | 0x20
		ok = ok && ('a' <= c && c <= 'z' || '0' <= name[i] && name[i] <= '9' || name[i] == '_')
	}
	return ok
}

func (c *checker) globs(key string, globs []string) {
	c.entries(key, globs)
	for _, g := range globs {
		if err := CheckName(strings.ReplaceAll(g, "*", "x")); err != nil {
			c.refuse(key, "%+q: want the name of a tool, in which * stands for any text", cut(g))
		}
	}
}

func (c *checker) arguments() {
	if len(c.m.Arguments) > maxEntries {
		c.refuse("arguments", "it has %d entries; want at most %d", len(c.m.Arguments), maxEntries)
	}
	for _, key := range slices.Sorted(maps.Keys(c.m.Arguments)) {
		what := c.m.Arguments[key]
		if _, argument, ok := SplitArgument(key); !ok || argument == "" {
			c.refuse("arguments."+key, "%+q names no argument; want \"TOOL.ARGUMENT\"", cut(key))
		}
		if what != ArgumentPath && what != ArgumentHost && what != ArgumentCommand {
			c.refuse("arguments."+key, "%+q is %+q; want \"path\", \"host\" or \"command\"", cut(key), cut(what))
		}
	}
}

// SplitArgument parts a key of Manifest.Arguments at its last dot; ok is false
// where the tool's part is no name of one, which may hold "*".
func SplitArgument(key string) (tool, argument string, ok bool) {
	i := strings.LastIndexByte(key, '.')
	if i <= 0 || len(key) > 200 || checkText(key) != nil {
		return "", "", false
	}
	tool, argument = key[:i], key[i+1:]
	return tool, argument, CheckName(strings.ReplaceAll(tool, "*", "x")) == nil
}
