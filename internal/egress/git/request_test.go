package git

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func request(method, target, contentType, body string) *http.Request {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil
	}
	r := &http.Request{Method: method, URL: u, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

const (
	uploadRequest  = "application/x-git-upload-pack-request"
	receiveRequest = "application/x-git-receive-pack-request"
	lfsJSON        = "application/vnd.git-lfs+json"
)

func TestClassify(t *testing.T) {
	create := pkt(zero+" "+idB+" refs/heads/x"+caps, "") + packOf()
	tests := []struct {
		method, target, contentType, body string
		kind                              Kind
		discovery, lfs                    bool
	}{
		{"GET", "/o/r.git/info/refs?service=git-upload-pack", "", "", Fetch, false, false},
		{"GET", "/o/r/info/refs?service=git-receive-pack", "", "", Push, true, false},
		{"GET", "/o/r/info/refs", "", "", Fetch, false, false},
		{"POST", "/o/r.git/git-upload-pack", uploadRequest, "0014command=ls-refs\n0000", Fetch, false, false},
		{"POST", "/o/r.git/git-upload-archive", "application/x-git-upload-archive-request", "0000", Fetch, false, false},
		{"POST", "/o/r.git/git-receive-pack", receiveRequest, create, Push, false, false},
		{"POST", "/o/r.git/git-receive-pack", receiveRequest, "0000", Push, false, false},
		{"GET", "/o/r.git/HEAD", "", "", Fetch, false, false},
		{"GET", "/o/r.git/objects/info/packs", "", "", Fetch, false, false},
		{"GET", "/o/r.git/objects/aa/" + idA[:38], "", "", Fetch, false, false},
		{"GET", "/o/r.git/objects/pack/pack-" + idA + ".idx", "", "", Fetch, false, false},
		{"POST", "/o/r.git/info/lfs/objects/batch", lfsJSON, `{"operation":"download","objects":[]}`, Fetch, false, true},
		{"POST", "/o/r.git/info/lfs/objects/batch", lfsJSON, `{"objects":[{"oid":"operation"}],"operation":"upload"}`, Push, false, true},
		{"GET", "/o/r.git/info/lfs/locks?path=a", "", "", Fetch, false, true},
		{"POST", "/o/r.git/info/lfs/locks", lfsJSON, `{}`, Push, false, true},
		{"POST", "/o/r.git/info/lfs/locks/12/unlock", lfsJSON, `{}`, Push, false, true},
	}
	for _, tt := range tests {
		r := request(tt.method, tt.target, tt.contentType, tt.body)
		op, err := Inspector{}.HTTP(r)
		if err != nil || op.Kind != tt.kind || op.Discovery != tt.discovery || op.LFS != tt.lfs || op.Repo != "o/r" {
			t.Errorf("%s %s: got %+v, %v", tt.method, tt.target, op, err)
			continue
		}
		if got, err := io.ReadAll(r.Body); err != nil || string(got) != tt.body {
			t.Errorf("%s %s: the body is %q, %v", tt.method, tt.target, got, err)
		}
		r.Body.Close()
	}
}

// TestNotGit: pages of the same host are no git requests.
func TestNotGit(t *testing.T) {
	for _, target := range []string{
		"/", "/o/r", "/o/r/pulls", "/api/v3/repos/o/r", "/o/r/blob/main/git-receive-pack.c", "/o/r/tree/main/info", "/o/r/objects/x", "/login?return_to=%2Fo%2Fr", "/o%20x/HEAD",
	} {
		if op, err := (Inspector{}).HTTP(request("GET", target, "", "")); err != nil || op.Kind != None {
			t.Errorf("%s: got %+v, %v", target, op, err)
		}
	}
	if op, err := (Inspector{}).HTTP(request("POST", "/o/r/pulls", "application/json", "{}")); err != nil || op.Kind != None {
		t.Errorf("got %+v, %v", op, err)
	}
}

// TestMalformed: what a server may take for git's and is not exactly that is
// an error, and no page.
func TestMalformed(t *testing.T) {
	const push = "/o/r.git/git-receive-pack"
	body := pkt(zero+" "+idB+" refs/heads/x"+caps, "") + packOf()
	tests := []struct{ method, target, contentType, body string }{
		{"POST", push, "", body},
		{"POST", push, "text/plain", body},
		{"POST", push, uploadRequest, body},
		{"POST", push + "?x=1", receiveRequest, body},
		{"POST", push + "/", receiveRequest, body},
		{"POST", push + ";x", receiveRequest, body},
		{"PUT", push, receiveRequest, body},
		{"PATCH", "/o/r.git/git-Receive-Pack", "", body},
		{"POST", "/o/r.git/git%2Dreceive%2Dpack", "", body},
		{"POST", "/o/r.git/git%252Dreceive-pack", "", body},
		{"POST", "/o/r.git%2Fgit-receive-pack", "", body},
		{"POST", "/o/r.git//git-receive-pack", receiveRequest, body},
		{"POST", "/x/../o/r.git/git-receive-pack", receiveRequest, body},
		{"POST", "/o/./r.git/git-receive-pack", receiveRequest, body},
		{"POST", "//o/r.git/git-receive-pack", receiveRequest, body},
		{"POST", "/git-receive-pack", receiveRequest, body},
		{"POST", "/anything", receiveRequest, body},
		{"POST", push, receiveRequest, ""},
		{"POST", push, receiveRequest, "no pkt-lines"},
		{"GET", "/o/r.git/info/refs?service=git-receive-pack&x=1", "", ""},
		{"GET", "/o/r.git/info/refs?x=1&service=git-receive-pack", "", ""},
		{"GET", "/o/r.git/info/refs?service=git%2Dreceive-pack", "", ""},
		{"GET", "/o/r.git//info/refs?service=git-receive-pack", "", ""},
		{"GET", "/o/r.git/x/../info/refs?service=git-receive-pack", "", ""},
		{"GET", "/o/r.git/info/refs?service=git-receive-pack", "", "a body"},
		{"POST", "/o/r.git/info/refs?service=git-receive-pack", "", ""},
		{"POST", "/o/r.git/info/lfs/objects/batch?x", lfsJSON, "{}"},
		{"POST", "/o/r.git/info/lfs/objects/verify", lfsJSON, "{}"},
		{"PUT", "/o/r.git/info/lfs/objects/" + idA, "", "x"},
		{"POST", "/o/../r.git/info/lfs/objects/batch", lfsJSON, `{"operation":"upload"}`},
	}
	for _, batch := range []string{
		"", "[]", "{}", "null", `{"operation":"delete"}`, `{"operation":1}`, `{"operation":["upload"]}`, `{"operation":"download","operation":"upload"}`, `{"Operation":"upload","operation":"download"}`,
		`{"operation":"download"}{"operation":"upload"}`, `{"operation":"download"} x`, `{"operation":"download"`, `{"OPERATION":"download"}`,
	} {
		tests = append(tests, struct{ method, target, contentType, body string }{"POST", "/o/r/info/lfs/objects/batch", lfsJSON, batch})
	}
	for _, tt := range tests {
		if op, err := (Inspector{}).HTTP(request(tt.method, tt.target, tt.contentType, tt.body)); err == nil {
			t.Errorf("%s %s %q: got %+v", tt.method, tt.target, tt.body, op)
		}
	}
}

// TestWritesFiles: a push without git on the server, as git-http-push(1) makes it,
// can't be judged and is refused. Other uses of WebDAV are left alone.
func TestWritesFiles(t *testing.T) {
	try := func(method, target, destination string) error {
		r := request(method, target, "", "")
		if destination != "" {
			r.Header.Set("Destination", destination)
		}
		op, err := Inspector{}.HTTP(r)
		if err == nil && op.Kind != None {
			t.Errorf("%s %s: got %+v", method, target, op)
		}
		return err
	}
	for _, tt := range [][3]string{
		{"PUT", "/o/r.git/refs/heads/main"}, {"PUT", "/o/r.git/objects/aa/" + idA[:38] + "_" + idA}, {"LOCK", "/o/r/refs/heads/main"}, {"MKCOL", "/o/r.git/objects/aa/"},
		{"PROPFIND", "/o/r.git/"}, {"DELETE", "/o/r.git"}, {"PUT", "/o/r.GIT/Refs/heads/main"}, {"PUT", "/o/r.git%2Frefs%2Fheads%2Fmain"}, {"PUT", "/o/r.git/HEAD?x=1"},
		{"PUT", "/o/r.git/hooks/update"}, {"MOVE", "/x", "https://h.example/o/r.git/refs/heads/main"}, {"COPY", "/x", "/o/r.git/%72efs/heads/main?x"}, {"ODD", "/o/r.git/config"},
	} {
		if err := try(tt[0], tt[1], tt[2]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%v: got %v", tt, err)
		}
	}
	for _, tt := range [][3]string{
		{"PUT", "/o/r/contents/a"}, {"DELETE", "/api/v4/projects/1"}, {"PUT", "/bucket/objects/report"}, {"MOVE", "/files/a", "https://h.example/files/b"}, {"PROPFIND", "/files/"},
		{"PUT", "/o/r.git/gitlab-lfs/objects/" + idA + "/3"}, {"POST", "/o/r.git/"}, {"GET", "/o/r.git/config"},
	} {
		if err := try(tt[0], tt[1], tt[2]); err != nil {
			t.Errorf("%v: got %v", tt, err)
		}
	}
}

// TestQueryIsNotRepeated: what stands in a query may be a credential, and the
// error is recorded.
func TestQueryIsNotRepeated(t *testing.T) {
	_, err := (Inspector{}).HTTP(request("GET", "/o/r.git/info/refs?service=git-upload-pack&private_token=hunter2", "", ""))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

// TestDumbFetchWithQuery: a server of files hands out the same object whatever
// stands behind the question mark.
func TestDumbFetchWithQuery(t *testing.T) {
	for _, file := range []string{"/objects/aa/" + idA[:38], "/objects/pack/pack-" + idA + ".pack", "/objects/info/packs"} {
		op, err := (Inspector{}).HTTP(request("GET", "/o/r.git"+file+"?x=1", "", ""))
		if err != nil || op.Kind != Fetch || op.Repo != "o/r" {
			t.Errorf("%s: got %+v, %v", file, op, err)
		}
	}
}

func zipped(parts ...string) string {
	var b bytes.Buffer
	for _, p := range parts {
		z := gzip.NewWriter(&b)
		io.WriteString(z, p)
		z.Close()
	}
	return b.String()
}

// TestCompressedBodies: what is judged is what goes out, and a body that two
// decoders read differently does not.
func TestCompressedBodies(t *testing.T) {
	create := pkt(zero+" "+idB+" refs/heads/x"+caps, "") + packOf()
	post := func(encoding, body string) (*http.Request, Operation, error) {
		r := request("POST", "/o/r.git/git-receive-pack", receiveRequest, body)
		r.Header["Content-Encoding"] = strings.Fields(encoding)
		op, err := Inspector{Limits: Limits{Inflated: 1 << 20}}.HTTP(r)
		return r, op, err
	}
	r, op, err := post("gzip", zipped(create))
	if err != nil || len(op.Updates) != 1 || r.Header.Get("Content-Encoding") != "" || r.ContentLength != -1 {
		t.Fatalf("got %+v, %v, length %d", op, err, r.ContentLength)
	}
	if got, err := io.ReadAll(r.Body); err != nil || string(got) != create {
		t.Errorf("the body is %q, %v", got, err)
	}
	for name, body := range map[string]string{
		"bomb":         zipped(pkt(goodHead, "") + packOf(object{kind: objBlob, text: make([]byte, 8<<20)})),
		"cut off":      zipped(create)[:40],
		"not in gzip":  create,
		"no end":       zipped(pkt(goodHead, ""))[:20],
		"empty":        "",
		"commands cut": zipped(create[:20], create[20:]),
	} {
		if _, op, err := post("gzip", body); err == nil {
			t.Errorf("%s: got %+v", name, op)
		}
	}
	for _, encoding := range []string{"br", "deflate", "gzip gzip", "identity", "GZIP"} {
		if _, op, err := post(encoding, create); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %+v, %v", encoding, op, err)
		}
	}
	for name, body := range map[string]string{"a second member": zipped(create, "more"), "a bomb behind the commands": zipped(create + string(make([]byte, 2<<20)))} {
		if r, _, err = post("gzip", body); err != nil {
			continue
		}
		if got, err := io.ReadAll(r.Body); err == nil {
			t.Errorf("%s: %d bytes go out without an error", name, len(got))
		}
	}
}

// FuzzHTTP: a request is a git operation on a normal repository, or looks in
// no way like one, or is an error.
func FuzzHTTP(f *testing.F) {
	f.Add("GET", "/o/r.git/info/refs?service=git-upload-pack", "")
	f.Add("POST", "/o/r.git/git-receive-pack", receiveRequest)
	f.Add("POST", "/o/r.git/git%2Dreceive-pack", receiveRequest)
	f.Add("GET", "/o/r.git/objects/info/packs", "")
	f.Add("POST", "/o/r/info/lfs/objects/batch", lfsJSON)
	f.Fuzz(func(t *testing.T, method, target, contentType string) {
		r := request(method, target, contentType, "")
		if r == nil {
			return
		}
		op, service, err := classify(r)
		if err != nil {
			return
		}
		if op.Kind == None && (service != "" || method == "POST" && strings.Contains(strings.ToLower(r.URL.Path), "git-receive-pack")) {
			t.Errorf("%s %s passes as %+v", method, target, op)
		}
		if name, err := repoName(op.Repo); op.Kind != None && (err != nil || name != op.Repo || strings.ContainsAny(target, "%\\;")) {
			t.Errorf("%s %s: repository %q, %v", method, target, op.Repo, err)
		}
	})
}
