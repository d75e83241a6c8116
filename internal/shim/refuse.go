//go:build linux || darwin

package shim

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/redact"
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
	var line strings.Builder
	to := json.NewEncoder(&line)
	to.SetEscapeHTML(false)
	if to.Encode(denial{"bawn", true, r.Rule, r.Reason, r.Remedy, r.Ask, r.Session}) != nil { // strings can always be written
		line.WriteString("{\"by\":\"bawn\",\"denied\":true}\n")
	}
	words = redact.Visible(strings.ReplaceAll(words, "\n", " "))
	_, _ = os.Stderr.WriteString(words + "\n" + line.String()) // as in say
}
