package asking

import (
	"context"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/pluginhook"
)

// tighten asks the hooks about a decision. Whatever they answer, they permit no
// more than the policy does.
func (d *Prompter) tighten(ctx context.Context, z *Zone, a bawn.Action, dec bawn.Decision) bawn.Decision {
	if d.opts.Hooks == nil {
		return dec
	}
	t := d.opts.Hooks.Tighten(ctx, a, dec)
	if z.Later && t.Verdict == bawn.Ask {
		return dec
	}
	t.Verdict = bawn.Strictest(dec.Verdict, t.Verdict)
	if t.Single = t.Single || dec.Single; byHook(t.Rule) { // a plugin asks about this action
		t.Holds = ""
	}
	return t
}

// byHook reports whether a rule is that of a hook plugin. Those of manifests of
// servers have one more part.
func byHook(rule string) bool {
	name, ok := strings.CutPrefix(rule, pluginhook.RulePrefix)
	return ok && name != "" && !strings.Contains(name, ":")
}
