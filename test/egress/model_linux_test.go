package egress_test

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/testenv/clients"
)

// Files of a model in the lab, in its directory.
const (
	modelKey = "key" // what a request has to carry in one of its headers
	modelURL = "url" // where the scripted model listens, outside
)

// keyHeaders are those in which the APIs of models want a key.
var keyHeaders = []string{"Authorization", "X-Goog-Api-Key", "X-Api-Key"}

// modelHost is the host of an agent's model.
func modelHost(agent string) string { return agent + ".model.test" }

// model serves the APIs of the scripted models, one for each agent, to clients that
// have the key.
func (o *outsider) model(mux *http.ServeMux) {
	for _, c := range clients.All() {
		dir := filepath.Join(o.dir, "model", c.Name)
		mux.HandleFunc(modelHost(c.Name)+"/", func(w http.ResponseWriter, r *http.Request) { serveModel(dir, w, r) })
	}
}

func serveModel(dir string, w http.ResponseWriter, r *http.Request) {
	key, err := os.ReadFile(filepath.Join(dir, modelKey))
	if err != nil || !slices.ContainsFunc(keyHeaders, func(name string) bool {
		return strings.TrimPrefix(r.Header.Get(name), "Bearer ") == string(key)
	}) {
		http.Error(w, `{"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "no such key"}}`, http.StatusUnauthorized)
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, modelURL))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	to, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	proxy := httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }, FlushInterval: -1}
	proxy.ServeHTTP(w, r)
}
