package egress_test

import (
	"net/http"
	"net/http/cgi"
	"path/filepath"
)

// repositories serves git's smart protocol from the lab's directory of bare
// repositories, with git's own program.
func (o *outsider) repositories(mux *http.ServeMux) {
	serve := &cgi.Handler{
		Path: "/usr/lib/git-core/git-http-backend", Root: "/git",
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Join(o.dir, "repos"), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=dev", "HOME=" + o.dir},
	}
	mux.Handle("/git/", serve)
	mux.HandleFunc("/git/locked/", func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != lockedBy {
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

// lockedBy is the password of repositories below /git/locked.
const lockedBy = "forge-0123456789abcdefghij"

// packages serves registries from the lab's directory, by the host's name.
func (o *outsider) packages(mux *http.ServeMux) {
	for host := range registries {
		mux.Handle(host+"/", http.FileServer(http.Dir(filepath.Join(o.dir, "registries", host))))
	}
}
