package mitm

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/dial"
)

// A Refusal is an answer that Bawn gives in the host's place.
type Refusal struct {
	Status int    `json:"-"`
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy,omitempty"`
	close  bool   // the connection ends with it
	cause  string // for the log instead of Reason, which is for the guest
}

// Error returns the reason, as recorded in the log.
func (r *Refusal) Error() string { return cmp.Or(r.cause, r.Reason) }

// write answers a request with a header, as JSON where the client wants that.
func (r *Refusal) write(w http.ResponseWriter, request http.Header) {
	h := w.Header()
	clear(h)
	accept := request.Get("Accept")
	kind, body := r.awsError(request)
	if kind != "" {
		h.Set("Content-Type", kind)
	} else if strings.Contains(accept, "json") && !strings.Contains(accept, "text/html") {
		h.Set("Content-Type", "application/json")
		body, _ = json.Marshal(map[string]any{"error": map[string]any{ // strings always marshal
			"type": "bawn_refused", "message": r.text(), "bawn": r,
		}})
		body = append(body, '\n')
	} else {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		body = []byte(r.text() + "\n")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Bawn", "refused")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.close {
		h.Set("Connection", "close")
	}
	w.WriteHeader(r.Status)
	w.Write(body)
}

func (r *Refusal) text() string {
	var b strings.Builder
	what := "bawn refused this request"
	if r.Status >= http.StatusInternalServerError {
		what = "bawn could not forward this request"
	}
	fmt.Fprintf(&b, "%s: %s", what, r.Reason)
	if r.Rule != "" {
		fmt.Fprintf(&b, "\nrule: %s", r.Rule)
	}
	if r.Remedy != "" {
		fmt.Fprintf(&b, "\nwhat to do: %s", r.Remedy)
	}
	return b.String()
}

// busy refuses requests beyond the session's limit.
var busy = &Refusal{
	Status: http.StatusTooManyRequests, Rule: "limit",
	Reason: fmt.Sprintf("%d requests of the session are going on already", maxRequests), Remedy: "end some, and try again",
}

// longLine refuses what would fill the log.
var longLine = &Refusal{Status: http.StatusRequestURITooLong, Rule: "path", Reason: fmt.Sprintf("the method and the path have more than %d bytes", maxPath), close: true}

func denied(d bawn.Decision, remedy string) *Refusal {
	reason := d.Reason
	if reason == "" {
		reason = "nothing allows it"
	}
	return &Refusal{Status: http.StatusForbidden, Rule: d.Rule, Reason: reason, Remedy: remedy}
}

// misused refuses a placeholder where it does not belong.
func misused(b bawn.Binding, why string) *Refusal {
	return &Refusal{
		Status: http.StatusForbidden, Rule: "secret",
		Reason: fmt.Sprintf("the placeholder of the secret %q %s", b.Secret, why),
		Remedy: "send it only to the host and in the place that the secret is bound to: " + whereTo(b),
	}
}

func whereTo(b bawn.Binding) string {
	switch b.Place {
	case bawn.Header:
		return fmt.Sprintf("%s, header %s", b.Host, b.Name)
	case bawn.InQuery:
		return fmt.Sprintf("%s, query parameter %s", b.Host, b.Name)
	case bawn.Signed:
		return b.Host + ", Authorization: AWS4-HMAC-SHA256, signed with it"
	case bawn.Basic:
		return b.Host + ", the password of Authorization: Basic"
	}
	return b.Host + ", Authorization: Bearer"
}

// upstreamFailed describes an error on the other side.
func upstreamFailed(host string, err error) *Refusal {
	r := &Refusal{
		Status: http.StatusBadGateway, Reason: fmt.Sprintf("no answer from %q: %s", host, dial.Told(err)), cause: fmt.Sprintf("no answer from %q: %v", host, err),
	}
	var (
		unknown  x509.UnknownAuthorityError
		invalid  x509.CertificateInvalidError
		hostname x509.HostnameError
		verify   *tls.CertificateVerificationError
		helped   interface{ Remedy() string } // such as a refusal of an upstream proxy
	)
	switch {
	case errors.As(err, &hostname):
		r.Reason = fmt.Sprintf("the certificate of %q is for another host: %v", host, err)
	case errors.As(err, &unknown):
		r.Reason = fmt.Sprintf("the certificate of %q is signed by nobody this machine trusts: %v", host, err)
	case errors.As(err, &invalid), errors.As(err, &verify):
		r.Reason = fmt.Sprintf("the certificate of %q is not valid: %v", host, err)
	case errors.As(err, &helped):
		r.Remedy = helped.Remedy()
		return r
	default:
		return r
	}
	r.cause = ""
	r.Remedy = "the machine's own roots decide, not the guest's; a private CA has to be trusted by the machine that runs bawn"
	return r
}
