package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hostname"
)

// A target is a guest's destination: a port of a host, or there a request or an
// operation of git.
type target struct {
	host  string // in normal form
	class hostname.Class
	port  uint16
	path  string   // of a request or a repository; "" for a connection
	verb  string   // a method, or one of gitVerbs
	refs  []string // of a push
	Carried
}

// The verbs of git, which can't be methods: those are in upper case.
const (
	gitFetch = "fetch"
	gitPush  = "push"
)

// requestPorts are the schemes of requests.
var requestPorts = map[string]uint16{"http": 80, "https": 443, "ssh": 22}

// readTarget reads "host:port", or "scheme://host[:port]/path" with the method
// or the operation of git as arguments.
func readTarget(a bawn.Action) (t target, err error) {
	scheme, rest, request := strings.Cut(a.Resource, "://")
	if !request {
		if len(a.Args) > 0 {
			return target{}, fmt.Errorf("%q: a connection has no arguments", a.Resource)
		}
		return t, t.reads(a.Resource)
	}
	if t.port = requestPorts[scheme]; t.port == 0 {
		return target{}, fmt.Errorf("%q: the scheme %q is not known; want http, https or ssh", a.Resource, scheme)
	}
	authority, path, _ := strings.Cut(rest, "/")
	t.path = "/" + path
	if err = t.reads(authority); err == nil {
		err = t.wants(scheme, a.Args)
	}
	return t, err
}

// reads takes the host and its port.
func (t *target) reads(s string) (err error) {
	name, port, found := s, "", false
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		name, port, found = s[:i], s[i+1:], true
	}
	n, wrong := strconv.ParseUint(port, 10, 16)
	switch {
	case found && (wrong != nil || n == 0 || port[0] == '0'), !found && t.port == 0, strings.Contains(name, ":") && name[0] != '[':
		return fmt.Errorf("%q: want a host and a port from 1 to 65535", s)
	case found:
		t.port = uint16(n)
	}
	t.host, t.class, err = hostname.NormalASCII(name)
	return err
}

// The last arguments of an operation of git over SSH.
const (
	placeUser = "user="
	placePath = "path="
)

// SSHPlace returns the last arguments of a git operation over SSH, for what its
// resource does not say: "user=NAME" if the user is not git, then
// "path=/REPOSITORY" if the path begins at the server's root. No ref reads so.
func SSHPlace(user string, rooted bool, repo string) (args []string) {
	if user != "" && user != "git" {
		args = append(args, placeUser+user)
	}
	if rooted {
		args = append(args, placePath+"/"+repo)
	}
	return args
}

// withoutPlace removes SSHPlace's words from arguments: rules are about hosts,
// and the caller has compared the entries' users and paths.
func withoutPlace(args []string) []string {
	for _, prefix := range []string{placePath, placeUser} {
		if last := len(args) - 1; last > 0 && strings.HasPrefix(args[last], prefix) {
			args = args[:last]
		}
	}
	return args
}

// wants reads the operation at that target from the arguments.
func (t *target) wants(scheme string, args []string) error {
	if scheme == "ssh" {
		args = withoutPlace(args)
	} else {
		t.Carried, args = readCarries(args)
	}
	switch {
	case len(args) > 1 && args[0] == gitPush && !slices.ContainsFunc(args[1:], notRef):
		t.refs = args[1:]
	case len(args) == 1 && (args[0] == gitFetch || scheme != "ssh" && method(args[0])):
	default:
		return fmt.Errorf("%q: want a method, \"fetch\", or \"push\" and refs", args)
	}
	t.verb = args[0]
	return nil
}

// notRef reports whether a word is not the full name of a ref.
func notRef(s string) bool { return !strings.HasPrefix(s, "refs/") }

// method reports whether a word is a method, which are in upper case.
func method(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !(c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') })
}

func (t *target) git() bool { return t.verb == gitFetch || t.verb == gitPush }

// isGitService reports whether a request over HTTP is one that only git makes.
func (t *target) isGitService() bool {
	return strings.HasSuffix(t.path, "/info/refs") || strings.HasSuffix(t.path, "/git-upload-pack") || strings.HasSuffix(t.path, "/git-receive-pack")
}

// address writes the host and the port as rules do.
func (t *target) address() string {
	host := t.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(t.port))
}

// String writes the target for a trace. A guest's text is quoted.
func (t *target) String() string {
	if t.path == "" {
		return "connect " + t.address()
	}
	words := slices.Concat([]string{t.verb}, t.refs, t.args())
	return fmt.Sprintf("%s %q at %s", strings.Join(words, " "), t.path, t.address())
}
