package mitm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/url"
	"slices"
	"testing"
)

// FuzzFields: where one of Go's readers finds another method in a body, so does
// what looks through it, and what is found at once is found in pieces.
func FuzzFields(f *testing.F) {
	for _, body := range []string{
		"a=b&_method=DELETE", "%5fmethod=x", "a=1;_method=x", "+_method=x", `{"a":{"_method":1},"\u005fmethod":"DELETE"}`, `[{"_method":"x"}]`,
		"--b\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--b--\r\n", "--b\nContent-Disposition: form-data; name=_method\n\nx\n--b--",
		"--b\r\nContent-Disposition: form-data;\r\n name=\"_meth\\od\"\r\n\r\nDELETE\r\n--b--\r\n", "--b\r\nContent-Disposition: form-data; name*=utf-8''%5Fmethod\r\n\r\nx\r\n--b--\r\n",
	} {
		f.Add([]byte(body), uint8(3))
	}
	f.Fuzz(func(t *testing.T, body []byte, piece uint8) {
		for kind, look := range map[string]struct {
			fresh func() fieldScanner
			there bool
		}{
			"form": {func() fieldScanner { return &formFields{} }, formHas(body)},
			"JSON": {func() fieldScanner { return &jsonFields{} }, jsonHas(body)},
			"part": {func() fieldScanner { return &partFields{delimiter: []byte("--b")} }, partHas(body)},
		} {
			whole := look.fresh().feed(body)
			if look.there && !whole {
				t.Errorf("%s: %q has a method that is not found", kind, body)
			}
			pieces, s := false, look.fresh()
			for rest := body; len(rest) > 0 && !pieces; {
				n := min(len(rest), int(piece)+1)
				pieces, rest = s.feed(rest[:n]), rest[n:]
			}
			if whole && !pieces {
				t.Errorf("%s: %q is found at once, and not in pieces of %d", kind, body, int(piece)+1)
			}
		}
	})
}

func formHas(body []byte) bool {
	values, _ := url.ParseQuery(string(body)) // has what it could read
	return slices.ContainsFunc(values["_method"], func(v string) bool { return v != "" })
}

func jsonHas(body []byte) bool {
	var object map[string]json.RawMessage
	_ = json.Unmarshal(body, &object)
	_, there := object["_method"]
	return there
}

func partHas(body []byte) bool {
	r := multipart.NewReader(bytes.NewReader(body), "b")
	for {
		p, err := r.NextPart()
		if err != nil {
			return false
		}
		if p.FormName() == "_method" {
			// Nothing of a part that has no body is another method.
			n, err := p.Read(make([]byte, 1))
			return n > 0 && (err == nil || errors.Is(err, io.EOF))
		}
	}
}
