package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/dial"
	"github.com/bawn-dev/bawn/internal/egress/refuse"
	"github.com/bawn-dev/bawn/internal/egress/sniff"
	"github.com/bawn-dev/bawn/internal/guard"
)

// Rules that the relay itself refuses by.
const (
	RuleStale    = "builtin:egress-stale"    // an address of ours that stands for no name
	RuleBusy     = "builtin:egress-limit"    // a limit of the session
	RuleAgree    = "builtin:egress-agree"    // the bytes are not for the host that was dialled
	RuleProtocol = "builtin:egress-protocol" // the bytes are not in the port's protocol
	RuleAddress  = "builtin:egress-address"  // the name leads to an address that is closed
	RuleFailed   = egress.RuleFailed
)

// refused is a denial of a connection, with what to do about it.
type refused struct {
	d      bawn.Decision
	remedy string
	told   string // told to the guest instead of the reason, where that is not for it
}

// Error is the reason.
func (n *refused) Error() string { return n.d.Reason }

// refusal is a denial by the relay itself.
func refusal(rule, reason, remedy string) *refused {
	return &refused{d: bawn.Denied(reason, rule), remedy: remedy}
}

// unreachable is why a host can't be reached, as a denial where it was one.
func (r *Relay) unreachable(t Target, err error) *refused {
	var closed *dial.RefusedError
	if errors.As(err, &closed) {
		no := refusal(RuleAddress, closed.Error(), closed.Remedy())
		no.told = dial.Told(closed)
		return no
	}
	remedy := "it is not bawn that refuses; see whether the host is up"
	var proxy *dial.ProxyError
	if errors.As(err, &proxy) {
		remedy = proxy.Remedy()
	}
	no := refusal(RuleFailed, fmt.Sprintf("%s can't be reached: %v", t.resource(), err), remedy)
	no.told = fmt.Sprintf("%s can't be reached: %s", t.resource(), dial.Told(err))
	return no
}

// Meanwhile tells an agent what to do where nobody has answered: to try again and
// again would not help.
const Meanwhile = "; meanwhile go on with what does not need it, and say at the end what is left to do"

// remedyFor says what makes a connection allowed that the guard denied.
func remedyFor(t Target, d bawn.Decision) string {
	host := t.Host
	if !web(t.Port) {
		host = t.resource()
	}
	switch {
	case d.Rule == guard.RuleRecorder:
		return "mend the audit log"
	case strings.HasPrefix(d.Rule, "isolation:host_ports"):
		return fmt.Sprintf("whoever started the session can open it: bawn run --host-port %d", t.Port)
	case d.Rule == guard.RuleApproval:
		return "whoever started the session can allow it: bawn run --allow " + host + "; a guest can ask ahead: bawn request --allow " + host + Meanwhile
	case d.Source == bawn.Managed || d.Source == bawn.User || d.Source == bawn.Project:
		return fmt.Sprintf("a rule of the %s's policy says so; \"bawn policy show\" has it", d.Source)
	}
	return "whoever started the session can allow it: bawn run --allow " + host
}

// heard are a client's bytes so far.
type heard struct {
	hello sniff.Hello
	said  []byte
}

// refuse tells a client that it is refused, in its own protocol, and the human
// too, and closes the connection. It returns no.
func (r *Relay) refuse(c stream, t Target, h *heard, no *refused) error {
	if h == nil {
		h = r.overheard(c, t.Port)
	}
	n := r.denial(t, no.d, no.remedy)
	r.tell(n)
	_ = refuse.Write(c, h.hello, h.said, refuse.Denial{Resource: n.Resource, Rule: n.Rule, Reason: cmp.Or(no.told, n.Reason), Remedy: n.Remedy}) // it has gone then
	return no
}

// overheard waits a little for the bytes of a client that will be refused.
func (r *Relay) overheard(c stream, port uint16) *heard {
	wait := otherHello
	if web(port) {
		wait = refuseHello
	}
	_ = c.SetReadDeadline(r.Now().Add(wait))
	hello, said, err := sniff.Read(c, sniff.Limits{})
	_ = c.SetReadDeadline(time.Time{})
	if err != nil {
		return &heard{}
	}
	return &heard{hello, said}
}

func (r *Relay) denial(t Target, d bawn.Decision, remedy string) egress.Denial {
	return egress.Denial{Operation: bawn.Connect, Resource: t.resource(), Rule: d.Rule, Reason: d.Reason, Remedy: remedy}
}

// tell lets the human know.
func (r *Relay) tell(n egress.Denial) {
	if r.Denied != nil {
		r.Denied(n)
	}
}

// recordEnd records the end of a connection: where it went, how many bytes were
// moved and by which rule. It can't be stopped any more by then, so nothing
// waits for the log, unless it was refused after all; a log that takes no
// events denies the next connection. A connection that the guard was not asked
// about, because it is for no host, has this event only.
func (r *Relay) recordEnd(ctx context.Context, t Target, d bawn.Decision, f *flow, to netip.AddrPort, took time.Duration, err error) {
	e := r.Event
	e.Time = r.Now()
	e.Kind, e.Operation, e.Resource = bawn.Network.String(), "end", t.resource()
	e.Requested, e.Resolved, e.Source, e.Rule = d.Verdict, d.Verdict, "rule", d.Rule
	if d.Verdict != bawn.Allow {
		e.Operation = bawn.Connect.String()
	}
	e.Bytes, e.DurationMS = f.in.Load()+f.out.Load(), took.Milliseconds()
	e.Details = map[string]string{"bytesIn": strconv.FormatInt(f.in.Load(), 10), "bytesOut": strconv.FormatInt(f.out.Load(), 10)}
	if to.IsValid() {
		e.Details["address"] = to.String()
	}
	var no *refused
	if errors.As(err, &no) {
		e.Resolved, e.Rule = bawn.Deny, no.d.Rule
	}
	if err != nil {
		e.Reason = err.Error()
	}
	if r.Ended != nil && e.Operation == "end" && e.Resolved == bawn.Allow {
		r.Ended(e)
		return
	}
	_ = r.Guard.Recorder.Record(context.WithoutCancel(ctx), e)
}
