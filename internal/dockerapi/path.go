package dockerapi

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// A call is a request as it was understood: nothing else of its first line is
// used.
type call struct {
	endpoint *endpoint
	names    []string          // what stands for {…} in the endpoint's path
	query    map[string]string // of the endpoint's parameters, those that were given
	filters  map[string][]string
}

// An endpoint is a method and a path of the Docker API that is served.
type endpoint struct {
	method string
	path   string // with {id} for a segment, {image} for one or more
	query  string // names of the parameters that are known
	serve  func(*Broker, http.ResponseWriter, *http.Request, *call) error
}

const maxURI = 16 << 10 // bytes

var (
	versionPrefix = form(`^/v1\.[0-9]{1,2}/`)
	pathChars     = form(`^[A-Za-z0-9_.:@+/-]+$`)
	slashes       = strings.NewReplacer("%2F", "/", "%2f", "/", "%3A", ":", "%3a", ":", "%40", "@")
)

// parse understands the first line of a request. What can be read in two ways,
// such as an empty segment or an encoded dot, is refused.
func parse(list []endpoint, method, uri string) (*call, error) {
	unknown := refuse(RuleEndpoint, "docs/docker-api.md lists what there is", "%.20s %.200s is not among the requests that a guest may make", method, uri)
	path, query, asked := strings.Cut(uri, "?")
	if len(uri) > maxURI || asked && query == "" && strings.HasSuffix(path, "/") {
		return nil, unknown
	}
	if v := versionPrefix().FindString(path); v != "" {
		path = path[len(v)-1:]
	}
	path = slashes.Replace(path)
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if !strings.HasPrefix(path, "/") || !pathChars().MatchString(path) {
		return nil, unknown
	}
	for _, s := range segments {
		if s == "" || s == "." || s == ".." {
			return nil, unknown
		}
	}
	for i := range list {
		if list[i].method != method {
			continue
		}
		if names, ok := match(strings.Split(list[i].path, "/"), segments); ok {
			c := &call{endpoint: &list[i], names: names}
			return c, c.read(query)
		}
	}
	return nil, unknown
}

// match compares segments with a pattern of the same length, or with {image}
// in place of several.
func match(pattern, segments []string) (names []string, ok bool) {
	if i := indexOf(pattern, "{image}"); i >= 0 {
		after := len(pattern) - i - 1
		if len(segments) < len(pattern) {
			return nil, false
		}
		image := strings.Join(segments[i:len(segments)-after], "/")
		segments = append(append(segments[:i:i], image), segments[len(segments)-after:]...)
	}
	if len(pattern) != len(segments) {
		return nil, false
	}
	for i, p := range pattern {
		switch {
		case strings.HasPrefix(p, "{"):
			names = append(names, segments[i])
		case p != segments[i]:
			return nil, false
		}
	}
	return names, true
}

func indexOf(list []string, s string) int {
	for i := range list {
		if list[i] == s {
			return i
		}
	}
	return -1
}

// read takes the parameters that the endpoint knows, and refuses those that an
// engine would obey, unless they are empty: Docker's clients send these, too.
func (c *call) read(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return refuse(RuleQuery, "", "the parameters can't be read").status(http.StatusBadRequest)
	}
	known := strings.Fields(c.endpoint.query)
	c.query = map[string]string{}
	for name, list := range values {
		switch served := oneOf(name, known...); {
		case !served && !oneOf(name, unserved...):
			continue // no engine reads it either: clients repeat the body here
		case len(list) != 1:
			return refuse(RuleQuery, "", "the parameter %.100q is there twice", name).status(http.StatusBadRequest)
		case served:
			c.query[name] = list[0]
		case !off(list[0]):
			return refuse(RuleQuery, "leave it out", "the parameter %.100q is not among those that a guest may give here", name)
		}
	}
	if text := c.query["filters"]; text != "" {
		c.filters, err = readFilters(text)
	}
	delete(c.query, "filters")
	return err
}

// readFilters reads both forms that Docker has had: lists of values, and maps
// of values to true.
func readFilters(text string) (map[string][]string, error) {
	type form struct {
		Filters map[string]strictList
	}
	var f form
	if err := decode([]byte(`{"Filters":`+text+`}`), &f); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for name, list := range f.Filters {
		out[name] = list
	}
	return out, nil
}

// flag is a boolean parameter, as Docker reads it.
func (c *call) flag(name string) bool { return !off(c.query[name]) }

func off(value string) bool {
	return oneOf(strings.ToLower(strings.TrimSpace(value)), "", "0", "no", "false", "none")
}

// pass copies parameters of which the engine makes the same as the guest
// means. What is not of the form is refused.
func (c *call) pass(form *regexp.Regexp, names ...string) (url.Values, error) {
	out := url.Values{}
	for _, n := range names {
		v, ok := c.query[n]
		if !ok || v == "" {
			continue
		}
		if !form.MatchString(v) {
			return nil, refuse(RuleQuery, "", "the parameter %q can't be %.100q", n, v).status(http.StatusBadRequest)
		}
		out.Set(n, v)
	}
	return out, nil
}

// Forms of parameters.
var (
	wordForm = form(`^[A-Za-z0-9_.,:+-]{1,64}$`) // flags, numbers, times, signals
	hexForm  = form(`^[0-9a-f]{64}$`)
)
