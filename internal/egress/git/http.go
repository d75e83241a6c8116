package git

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Services of git's servers, named as on the wire.
const (
	uploadPack    = "git-upload-pack"
	receivePack   = "git-receive-pack"
	uploadArchive = "git-upload-archive"
)

// dumb matches the paths that a client of the dumb protocol reads
// (gitprotocol-http(5)), below the repository.
var dumb = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.+)/(?:HEAD|objects/info/(?:packs|alternates|http-alternates)|objects/[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})|objects/pack/pack-(?:[0-9a-f]{40}|[0-9a-f]{64})\.(?:pack|idx))$`)
})

// ErrMalformed marks a request that looks like git's but is not exactly what
// git sends. It must be refused, even if another rule permits its path.
var ErrMalformed = errors.New("not a git request as git makes it")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// HTTP returns the effect of a request and reads the body if that decides:
// pushes and the LFS batch. Afterwards r.Body yields exactly what was judged,
// without a content encoding; closing it closes the original body. Headers and
// ContentLength match it. [None] without an error means that the request has
// nothing to do with git and r is unchanged. After an error r must not be sent.
func (in Inspector) HTTP(r *http.Request) (Operation, error) {
	op, service, err := classify(r)
	if err != nil || op.Kind == None {
		return op, err
	}
	switch {
	case r.Method == http.MethodGet && r.ContentLength != 0:
		return op, malformed("a GET of %q has a body", r.URL.Path)
	case service == receivePack && !op.Discovery:
		return in.replace(r, func(body io.Reader) (Operation, io.ReadCloser, error) { return in.Push(op, body) })
	case service == lfsBatch:
		return in.replace(r, func(body io.Reader) (Operation, io.ReadCloser, error) { return readBatch(op, body) })
	}
	return op, nil
}

// replace hands the decoded body to read and puts its result in its place. A
// body that was compressed goes out as it was understood: two decoders may
// disagree about where it ends.
func (in Inspector) replace(r *http.Request, read func(io.Reader) (Operation, io.ReadCloser, error)) (Operation, error) {
	body, err := decoded(r, in.Limits.filled())
	if err != nil {
		return Operation{}, err
	}
	op, again, err := read(body)
	if err != nil {
		return op, err
	}
	if r.Header.Get("Content-Encoding") != "" {
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
		r.ContentLength = -1
	}
	r.Body = closing{again, r.Body}
	return op, nil
}

// closing closes two things and reads from the first.
type closing struct {
	io.ReadCloser
	under io.Closer
}

func (c closing) Close() error { return errors.Join(c.ReadCloser.Close(), c.under.Close()) }

// decoded returns the body without its content encoding.
func decoded(r *http.Request, limits Limits) (io.Reader, error) {
	switch encoding := r.Header.Values("Content-Encoding"); {
	case len(encoding) == 0:
		return r.Body, nil
	case len(encoding) > 1 || encoding[0] != "gzip" && encoding[0] != "x-gzip":
		return nil, malformed("content encoding %.80q; want gzip or none", encoding)
	}
	under := bufio.NewReader(r.Body)
	z, err := gzip.NewReader(under)
	if err != nil {
		return nil, malformed("the body is not in gzip: %v", err)
	}
	z.Multistream(false)
	return &oneMember{z: z, under: under, left: limits.Inflated}, nil
}

// oneMember reads a gzip body of one member. git's http-backend stops after
// the first, others go on.
type oneMember struct {
	z     *gzip.Reader
	under *bufio.Reader // what z reads from, byte by byte
	left  int64
}

func (m *oneMember) Read(p []byte) (int, error) {
	n, err := m.z.Read(p)
	if m.left -= int64(n); m.left < 0 {
		return 0, errors.New("the body inflates to more than may be looked at")
	}
	if errors.Is(err, io.EOF) {
		return n, m.end()
	}
	return n, err
}

func (m *oneMember) end() error {
	if _, err := m.under.Peek(1); !errors.Is(err, io.EOF) {
		return malformed("something follows the end of the compressed body: %v", err)
	}
	return io.EOF
}

// classify reads the request line and the content type.
func classify(r *http.Request) (op Operation, service string, err error) {
	path, query := r.URL.EscapedPath(), r.URL.RawQuery
	for _, read := range []func(*http.Request, string, string) (Operation, string, bool, error){
		discovery, rpc, lfs, dumbFetch,
	} {
		op, service, ok, err := read(r, path, query)
		if err != nil {
			return Operation{}, "", malformed("%v", err)
		}
		if ok {
			return op, service, nil
		}
	}
	if looksLikeGit(r) {
		return Operation{}, "", malformed("%s %.200q (its query is not git's: %t) with content type %.80q", r.Method, path, query != "", r.Header.Get("Content-Type"))
	}
	return Operation{}, "", nil
}

// discovery is the question for refs that begins every exchange; without a
// service it is the dumb protocol's.
func discovery(r *http.Request, path, query string) (Operation, string, bool, error) {
	repo, ok := strings.CutSuffix(path, "/info/refs")
	if !ok || r.Method != http.MethodGet {
		return Operation{}, "", false, nil
	}
	name, err := repoName(repo)
	op := Operation{Kind: Fetch, Repo: name}
	switch query {
	case "", "service=" + uploadPack, "service=" + uploadArchive:
	case "service=" + receivePack:
		op.Kind, op.Discovery = Push, true
	default:
		return Operation{}, "", false, nil
	}
	return op, strings.TrimPrefix(query, "service="), true, err
}

// rpc is the exchange itself. git-http-backend wants the content type too.
func rpc(r *http.Request, path, query string) (Operation, string, bool, error) {
	at := strings.LastIndexByte(path, '/')
	if at < 0 || r.Method != http.MethodPost || query != "" {
		return Operation{}, "", false, nil
	}
	service := path[at+1:]
	kind := map[string]Kind{uploadPack: Fetch, uploadArchive: Fetch, receivePack: Push}[service]
	contentType := r.Header.Values("Content-Type")
	if kind == None || len(contentType) != 1 || contentType[0] != "application/x-"+service+"-request" {
		return Operation{}, "", false, nil
	}
	name, err := repoName(path[:at])
	return Operation{Kind: kind, Repo: name}, service, true, err
}

func dumbFetch(r *http.Request, path, query string) (Operation, string, bool, error) {
	m := dumb().FindStringSubmatch(path)
	if m == nil || query != "" && strings.HasSuffix(path, "/HEAD") || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return Operation{}, "", false, nil
	}
	name, err := repoName(m[1])
	if err != nil {
		return Operation{}, "", false, nil // a page that happens to end like this
	}
	return Operation{Kind: Fetch, Repo: name}, "", true, nil
}

// looksLikeGit reports whether a server might take a request for git's despite
// oddities: escapes, case, doubled slashes, parameters. Pages that have the
// name of a service in their path may be looked at.
func looksLikeGit(r *http.Request) bool {
	text := strings.ToLower(r.URL.Path + "?" + r.URL.RawPath + "?" + r.URL.RawQuery + "?" + strings.Join(r.Header.Values("Content-Type"), ","))
	text = strings.NewReplacer("%2d", "-", "%2f", "/", "%5f", "_", `\`, "/").Replace(text)
	marks := []string{"service=git", "/info/refs", "/info/lfs", "x-git-", "vnd.git-lfs"}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		marks = append(marks, receivePack, uploadPack, uploadArchive)
	}
	return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(text, m) }) || writesFiles(r)
}

// inRepository matches paths within a repository on a disk
// (gitrepository-layout(5)), and a repository as a whole.
var inRepository = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\.git/?$|\.git/(?:head|config|packed-refs|info|hooks|branches|logs|worktrees|modules|refs|objects)(?:/|$)|/refs/(?:heads|tags|remotes)(?:/|$)|/objects/(?:[0-9a-f]{2}|pack|info)(?:/|$)`)
})

// writesFiles reports whether a request may write a repository's files, as
// git-http-push(1) does on a WebDAV server (RFC 4918): no command and no ref
// can be seen there. Destination names what MOVE and COPY write.
func writesFiles(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions, http.MethodPatch:
		return false
	}
	for _, path := range append(r.Header.Values("Destination"), r.URL.Path) {
		path, _, _ = strings.Cut(path, "?")
		if plain, err := url.PathUnescape(path); err == nil {
			path = plain
		}
		if inRepository().MatchString(strings.ToLower(path)) {
			return true
		}
	}
	return false
}
