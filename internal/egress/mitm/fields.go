package mitm

import (
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A fieldScanner looks in a body for the field by which frameworks override the
// request's method: "_method" in a form (Rails, Symfony, Spring), and in JSON
// too (Laravel). Bytes that hold the end of such a name are not passed on, and
// so never what follows it.
type fieldScanner interface{ feed(p []byte) (found bool) }

type fieldScanners []fieldScanner

func (all fieldScanners) feed(p []byte) (found bool) {
	for _, s := range all {
		found = s.feed(p) || found
	}
	return found
}

// fields returns what looks through a body, or nil where it has no fields. A
// server may look for a type anywhere in the header. In a POST a server may take
// a body without a content type for a form, and a field of JSON for the method.
// Other methods are not affected (Rack::Request.form_data?, Symfony's
// Request.getMethod), and uploads use them.
func fields(method string, h http.Header, encoding string) (fieldScanner, *Refusal) {
	given := strings.TrimSpace(strings.Join(h.Values("Content-Type"), ","))
	lower := strings.ToLower(given)
	post := method == http.MethodPost
	several := len(h.Values("Content-Type")) > 1 // one of them may be empty
	form, parts, isJSON := post && (given == "" || several) || strings.Contains(lower, "urlencoded"), strings.Contains(lower, "multipart"), post && strings.Contains(lower, "json")
	if !form && !parts && !isJSON {
		return nil, nil
	}
	_, params, err := mime.ParseMediaType(given)
	if given != "" && err != nil || several || !plainCharset(params["charset"]) {
		return nil, unreadable("its content type " + strconv.Quote(given) + " can be read in several ways")
	}
	if encoding != "" && (form || parts || encoding != "gzip") { // not every server unpacks forms
		return nil, unreadable("it is packed as " + strconv.Quote(encoding))
	}
	var all fieldScanners
	if form {
		all = append(all, &formFields{})
	}
	if isJSON {
		all = append(all, &jsonFields{})
	}
	if parts {
		b := params["boundary"]
		if !onlyBoundary(lower, strings.ToLower(b)) || !plainBoundary().MatchString(b) {
			return nil, unreadable("the boundary of its parts can be read in several ways")
		}
		all = append(all, &partFields{delimiter: []byte("--" + b)})
	}
	return all, nil
}

// onlyBoundary says whether no other one can be read. The value itself may hold
// the word: browsers' do.
func onlyBoundary(given, value string) bool {
	const word = "boundary"
	return strings.Contains(given, word+"=") && !strings.Contains(value, word+"=") && strings.Count(given, word)-strings.Count(value, word) == 1
}

func plainCharset(s string) bool {
	s = strings.ToLower(s)
	return s == "" || s == "utf-8" || s == "utf8" || s == "us-ascii" || s == "iso-8859-1"
}

var plainBoundary = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Za-z'()+_./:=?-]{1,70}$`) })

func unreadable(why string) *Refusal {
	return &Refusal{
		Status: http.StatusUnsupportedMediaType, Rule: "override", Reason: "the body can't be looked through for the name of another method, and the host's entries limit methods: " + why,
		Remedy: "send it unpacked, in UTF-8, with one plain Content-Type, or have the path opened for all methods (\"*\")",
	}
}

// otherMethod refuses a body with a field that names a method.
func otherMethod() *Refusal {
	return &Refusal{
		Status: http.StatusBadRequest, Rule: "override", close: true, Reason: "a field of the body, such as \"_method\", would make it another request than the one that is decided",
		Remedy: "send it with its own method, or have the path opened for all methods (\"*\")",
	}
}

// namesOverride says whether a parameter is taken for another method or path.
// PHP drops spaces before names, ends them at a NUL, and makes underscores of
// dots; brackets make lists, and Rack drops those before a name.
func namesOverride(name string) bool {
	name, _, _ = strings.Cut(strings.TrimLeft(name, beforeNames), "\x00")
	if i := strings.IndexAny(name, "[]"); i >= 0 {
		name = name[:i]
	}
	rest, marked := strings.CutPrefix(strings.ReplaceAll(name, ".", "_"), "_")
	header := strings.Trim(asCGI(name), "-")
	return strings.HasPrefix(header, "x-") && isOverride(header) || marked && strings.ToLower(strings.TrimRight(rest, "_ \t\r\n")) == "method"
}

// beforeNames is what some drop before a name.
const beforeNames = " []\t\r\n"

var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)%u[0-9a-f]{4}|%[0-9a-f]{2}|\+`)
})

// unescaped resolves escapes as the most tolerant readers do: ASP.NET knows
// %u005F, and anything that is no escape stands for itself.
func unescaped(s string) string {
	return escapes().ReplaceAllStringFunc(s, func(e string) string {
		n, err := strconv.ParseUint(strings.TrimLeft(e, "%uU"), 16, 16)
		switch {
		case err != nil: // a plus
			return " "
		case len(e) == len("%5f"):
			return string([]byte{byte(n)})
		}
		return string(rune(n))
	})
}
