package dockerapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/bawn-dev/bawn/internal/redact"
)

// Rules by which the broker refuses.
const (
	RuleEndpoint  = "builtin:docker-endpoint"  // not on the list of endpoints
	RuleQuery     = "builtin:docker-query"     // a parameter that is not on the endpoint's list
	RuleBody      = "builtin:docker-body"      // not the one JSON text that the endpoint takes
	RuleField     = "builtin:docker-field"     // a field that is not on the list
	RuleHost      = "builtin:docker-host"      // would reach into the host or another container
	RuleMount     = "builtin:docker-mount"     // a place that is not the guest's to give
	RuleLimit     = "builtin:docker-limit"     // more than the session may use
	RuleImage     = "builtin:docker-image"     // an image that is not available
	RuleNetwork   = "builtin:docker-network"   // a network that is not the session's
	RuleOwn       = "builtin:docker-own"       // not of this session, or not there
	RuleConflict  = "builtin:docker-conflict"  // there is one of that name, or it is in use
	RuleEngine    = "builtin:docker-engine"    // the engine does not do its part
	RuleUnguarded = "builtin:docker-unguarded" // no guard to ask
)

// A Refusal says why the broker refused a request. The guest reads it, so it names no
// path outside the workspace.
type Refusal struct {
	Status int    // of HTTP
	Rule   string // one of the rules above, or the guard's
	Reason string // lower case, no period
	Remedy string // what to do; "" for nothing
	What   string // the request's method and path
}

// Error returns the refusal in one line.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("bawn refused this: %s (rule %s)", r.Reason, r.Rule)
	if r.Remedy != "" {
		text += "; " + r.Remedy
	}
	return redact.Visible(text)
}

// refuse makes a refusal of status 403.
func refuse(rule, remedy, format string, args ...any) *Refusal {
	return &Refusal{Status: http.StatusForbidden, Rule: rule, Reason: fmt.Sprintf(format, args...), Remedy: remedy}
}

// status returns r with another status.
func (r *Refusal) status(code int) *Refusal {
	r.Status = code
	return r
}

// missing returns the answer for objects that the session does not have. It is the same
// whether another session has them or not.
func missing(kind, name string) *Refusal {
	return refuse(RuleOwn, "", "no such %s in this session: %.100q", kind, name).status(http.StatusNotFound)
}

// An engineError is an error that the engine answered.
type engineError struct {
	Status  int
	Message string
}

func (e *engineError) Error() string { return "the engine: " + e.Message }

// writeError answers in Docker's form of errors.
func writeError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, struct {
		Message string `json:"message"`
	}{message})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"message":"BUG(bawn): an answer is no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the guest may be gone
}
