package launch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Rules by which a guest sees a place differently from the host. The kernel refuses
// by the first, so that nobody sees the refusals: a guest asks for the rule (bawn why
// PATH).
const (
	ruleHidden = "isolation:hidden"
	ruleMasked = "isolation:masked"
)

// noteHidden says of the first word of the command that names a place which the session
// does not see what opens it: the kernel refuses the place, and no word of Bawn's follows.
func (p *gatherer) noteHidden(req sandbox.Request) {
	hidden := hides(p.config, req, nil)
	for _, word := range p.Argv[1:] {
		at, err := filepath.EvalSymlinks(word)
		if !filepath.IsAbs(word) {
			at, err = filepath.EvalSymlinks(filepath.Join(p.dir, word))
		}
		if err != nil {
			continue
		}
		if why, ok := hidden(at); ok {
			p.note(p.env, strings.TrimSuffix(why.Reason+"; "+why.Remedy, "; "))
			return
		}
	}
}

// hides answers which rule of a session hides a place, and what opens it. It speaks of
// rules alone, and does not look whether the host has the place.
func hides(c *config.Config, req sandbox.Request, masked []sandbox.File) func(path string) (intent.Reason, bool) {
	return func(path string) (intent.Reason, bool) {
		if slices.ContainsFunc(masked, func(f sandbox.File) bool { return f.Target == path }) {
			return intent.Reason{Rule: ruleMasked, Reason: "it keeps secrets: the session sees placeholders in their place, and can't write it", Remedy: "start the session with --mask-env=off, where it reads them"}, true
		}
		h, ok := layout.HidingOf(req, path)
		if !ok {
			return intent.Reason{}, false
		}
		why := intent.Reason{Rule: ruleHidden, Reason: fmt.Sprintf("%s is hidden from the session: %s", h.Place, h.Why)}
		switch {
		case h.Open != "":
			why.Remedy = "start the session with --open " + h.Open
		case h.Mount:
			why.Remedy = c.ReadAdvice(path, h.Place)
		default:
			why.Remedy = "nothing opens it for a session: do it outside, or go on without it"
		}
		return why, true
	}
}
