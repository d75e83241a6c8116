package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
)

func (d *backend) tell(verb string, w http.ResponseWriter, r *http.Request) bool {
	do := backendVerbs[verb]
	if do != nil {
		do(d.t, d, w, r)
	}
	return do != nil
}

// backendVerbs change a backend from the scenarios of page/relay.mjs.
var backendVerbs = map[string]func(*testing.T, *backend, http.ResponseWriter, *http.Request){
	"pair": func(t *testing.T, d *backend, w http.ResponseWriter, r *http.Request) {
		code, err := d.page.Pair(t.Context(), r.FormValue("readonly") != "")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, code.Url)
	},
	"ask": func(t *testing.T, d *backend, _ http.ResponseWriter, r *http.Request) {
		go d.ask(t.Context(), realQuestion(r.FormValue("name"), r.FormValue("line")))
	},
	"elsewhere": func(t *testing.T, d *backend, w http.ResponseWriter, r *http.Request) {
		pending, err := d.queue.List(t.Context())
		for _, p := range pending {
			if p.Agent == r.FormValue("name") {
				_, err = d.queue.Answer(t.Context(), p.ID, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession, By: "anna at the terminal", At: time.Now()})
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	},
	"down": func(_ *testing.T, d *backend, _ http.ResponseWriter, _ *http.Request) { d.end() },
	"up":   func(t *testing.T, d *backend, _ http.ResponseWriter, _ *http.Request) { d.begin(t) },
	"state": func(_ *testing.T, d *backend, w http.ResponseWriter, _ *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, err := audit.Verify(filepath.Join(d.dir, "audit"))
		json.NewEncoder(w).Encode(map[string]any{"answers": d.answers, "inOrder": err == nil})
	},
}
