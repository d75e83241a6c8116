package webui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// fileTypes are the content types of the page's files: those of the machine's
// own tables may differ, and browsers are told not to guess.
var fileTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".ico": "image/x-icon", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".png": "image/png", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json", ".woff2": "font/woff2",
}

const index = "index.html"

// file serves a file of the page. What looks like a place in the page, and not
// like a file, is the page.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	data, err := readPage(s.o.Files, name)
	if err != nil && path.Ext(name) == "" {
		name = index
		data, err = readPage(s.o.Files, name)
	}
	kind, known := fileTypes[path.Ext(name)]
	if err != nil || !known {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(data)
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:16])+`"`)
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, "assets/") { // their names hold a hash
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

func readPage(files fs.FS, name string) ([]byte, error) {
	if name == "" {
		return nil, fs.ErrNotExist
	}
	return fs.ReadFile(files, name)
}

// authority offers the certificate that a device has to trust.
func (s *Server) authority(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-x509-ca-cert")
	w.Header().Set("Content-Disposition", `attachment; filename="bawn-ca.crt"`)
	_, _ = w.Write(s.o.Authority) // the peer is gone
}
