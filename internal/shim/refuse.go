//go:build linux || darwin

package shim

import (
	"os"
	"strings"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A denial is the second line of a refusal: for programs.
type denial struct {
	By      string `json:"by"`
	Denied  bool   `json:"denied"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	Remedy  string `json:"remedy,omitempty"`
	Ask     string `json:"ask,omitempty"`
	Session string `json:"session,omitempty"`
}

// refused says who refused and why, in one line of words and one of JSON.
func refused(r *intent.Refusal) {
	words := "bawn: denied: " + strings.TrimPrefix(r.Reason, r.Rule+": ") + " (rule " + r.Rule + ")"
	if r.Remedy != "" {
		words += "; " + r.Remedy
	}
	if r.Ask != "" {
		words += "; to ask for it: " + r.Ask
	}
	words = redact.Visible(strings.ReplaceAll(words, "\n", " "))
	_, _ = os.Stderr.WriteString(words + "\n" + denialLine(r)) // as in say
}

// denialLine is a refusal for programs.
func denialLine(r *intent.Refusal) string {
	var line strings.Builder
	if verb.JSONLines(&line).Encode(denial{"bawn", true, r.Rule, r.Reason, r.Remedy, r.Ask, r.Session}) != nil { // strings can always be written
		return "{\"by\":\"bawn\",\"denied\":true}\n"
	}
	return line.String()
}
