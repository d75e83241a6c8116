package asking

import (
	"errors"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// contained is a session that holds what commands do, without a checkpoint.
var contained = Zone{Name: "z", Question: policy.Question{
	Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Contained: bawn.ContainedFully, Workspace: "/srv/app", Home: "/home/u", System: "linux",
}}

// answersOf puts a question of a zone as it comes from the guard, answered at the relay unless
// what was said before answers it.
func answersOf(t *testing.T, d *Prompter, r *relay, z Zone, a bawn.Action, say bawn.Answer) (got bawn.Answer, asked bool) {
	t.Helper()
	q := z.question(a)
	dec := z.decide(policyOf(t), &q)
	if dec.Verdict != bawn.Ask {
		t.Fatalf("%q is %v (%s); want it asked about", a.Resource, dec.Verdict, dec.Reason)
	}
	type result struct {
		answer bawn.Answer
		err    error
	}
	out := make(chan result, 1)
	go func() {
		answer, err := d.Approver(z).Approve(t.Context(), a, dec)
		out <- result{answer, err}
	}()
	var res result
	testenv.Until(t, "an answer to "+a.Resource, func() bool {
		select {
		case res = <-out:
			return true
		default:
		}
		queue, err := r.dial(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		list, err := queue.(kept).Prompter.(*approval.Queue).List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 && !asked {
			asked = true
			if _, err := queue.Answer(t.Context(), list[0].ID, say); err != nil {
				t.Fatal(err)
			}
		}
		return false
	})
	if res.err != nil {
		t.Fatalf("%q: %v", a.Resource, res.err)
	}
	return res.answer, asked
}

// TestSingleUse: a yes to a forced push counts once. It is not kept for the session, not
// learned, and no other answer stands for it.
func TestSingleUse(t *testing.T) {
	t.Parallel()
	r := startRelay(t)
	d := newPrompter(t, t.TempDir(), r)
	for _, line := range []string{"git push --force origin fix", "git push origin --delete fix", "kubectl delete pod x --context production"} {
		for round := range 2 {
			if a, asked := answersOf(t, d, r, contained, command(line), says1(bawn.Allow, bawn.Once)); !asked || a.Verdict != bawn.Allow || a.Scope != bawn.Once {
				t.Errorf("%q, round %d: %+v, asked %t; want it asked each time", line, round, a, asked)
			}
		}
	}
	line := command("git push --force origin fix")
	p, q := policyOf(t), contained.question(line)
	dec := p.Decide(&q)
	about := contained.digest(line, dec)
	d.said.Say(about, says1(bawn.Allow, bawn.ForSession)) // by whatever way it came there
	if a, ok := d.known(&contained, line, dec, about); ok {
		t.Errorf("a yes that was kept is heeded: %+v", a)
	}
	dec.Single = false // the control
	if _, ok := d.known(&contained, line, dec, about); !ok {
		t.Error("control: without the note it holds for the session")
	}
	go func() { _, _ = d.Approver(contained).Approve(t.Context(), line, p.Decide(&q)) }()
	rec := r.pending()
	if !rec.Single || len(rec.Always) != 0 || rec.NoAlways == "" || strings.Contains(approval.Legend(rec.Choices()), "session") {
		t.Errorf("asked as %+v, %q", rec.Question, approval.Legend(rec.Choices()))
	}
	queue, _ := r.dial(t.Context(), false)
	var late *approval.AnsweredError
	for _, scope := range []bawn.Scope{bawn.ForSession, bawn.Always} {
		if _, err := queue.Answer(t.Context(), rec.ID, says1(bawn.Allow, scope)); err == nil || errors.As(err, &late) {
			t.Errorf("the relay takes a yes %s: %v", approval.ScopeName(scope), err)
		}
	}
	r.answer(says1(bawn.Deny, bawn.ForSession)) // a no may hold
}

func policyOf(t *testing.T) *policy.Policy {
	t.Helper()
	p, err := policy.New(nil, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOneYesForTheWorkspace: where no checkpoint covers what is destroyed, one yes is for
// the workspace in this session, and for nothing else.
func TestOneYesForTheWorkspace(t *testing.T) {
	t.Parallel()
	r := startRelay(t)
	d := newPrompter(t, t.TempDir(), r)
	yes := says1(bawn.Allow, bawn.ForSession)
	for _, tt := range []struct {
		line  string
		asked bool
	}{
		{"rm -rf build", true}, {"rm -rf dist", false}, {"git reset --hard", false}, {"go build && rm -rf out", false},
		{"git push --force", true}, {"git push origin fix", true}, {"rm -rf build && git push origin x", true},
	} {
		say := yes
		if tt.line == "git push --force" {
			say = says1(bawn.Allow, bawn.Once)
		}
		if a, asked := answersOf(t, d, r, contained, command(tt.line), say); asked != tt.asked || a.Verdict != bawn.Allow {
			t.Errorf("%q: asked %t, %+v; want asked %t", tt.line, asked, a, tt.asked)
		}
	}
	other := contained
	other.Question.Workspace = "/srv/other"
	safe := contained
	safe.Question.Mode = bawn.ModeSafe
	zone := contained
	zone.Name = "another"
	for name, z := range map[string]Zone{"workspace": other, "mode": safe, "zone": zone, "not contained": normal} {
		if _, asked := answersOf(t, d, r, z, command("rm -rf tmp"), says1(bawn.Allow, bawn.Once)); !asked {
			t.Errorf("the yes holds in another %s", name)
		}
	}
	once := newPrompter(t, t.TempDir(), r) // a yes once is no yes for the workspace, and a no is for its line
	for _, say := range []bawn.Answer{says1(bawn.Allow, bawn.Once), says1(bawn.Deny, bawn.ForSession)} {
		if a, asked := answersOf(t, once, r, contained, command("rm -rf a"), say); !asked || a.Verdict != say.Verdict {
			t.Errorf("%+v, asked %t", a, asked)
		}
	}
	if a, asked := answersOf(t, once, r, contained, command("rm -rf b"), yes); !asked || a.Verdict != bawn.Allow {
		t.Errorf("after a no to another line: %+v, asked %t", a, asked)
	}
}

// TestYesReleasesTheOthers: what waits for the same yes goes on with it.
func TestYesReleasesTheOthers(t *testing.T) {
	t.Parallel()
	r := startRelay(t)
	d := newPrompter(t, t.TempDir(), r)
	q := contained.question(command("rm -rf a"))
	dec := policyOf(t).Decide(&q)
	about := contained.digest(command("rm -rf a"), dec)
	first, same := d.question(t.Context(), &contained, command("rm -rf a"), dec), d.question(t.Context(), &contained, command("rm -rf b"), dec)
	another := d.question(t.Context(), &contained, command("rm -rf c"), dec)
	another.Holds = "something else"
	for _, o := range []*open{first, same, another} {
		if err := d.enter(o); err != nil {
			t.Fatal(err)
		}
	}
	d.keep(first, about, says1(bawn.Allow, bawn.ForSession))
	if !isDone(same) || same.answer.Verdict != bawn.Allow || isDone(another) {
		t.Errorf("same: %t %+v, else: %t", isDone(same), same.answer, isDone(another))
	}
}

// TestHostLetThrough: once a host is let through, into which nobody looks, commands that
// send something ask again. A yes to one request leaves it as it is.
func TestHostLetThrough(t *testing.T) {
	t.Parallel()
	kept := notes{}
	zone, network := contained, Zone{Name: NetworkZone}
	zone.Question.ConnectionAsks = true
	d := New(Options{Session: "s", Kept: kept})
	defer d.Close()
	asks := func(d *Prompter) bool {
		dec, err := d.Decider(zone).Decide(t.Context(), command("git push"))
		return err != nil || dec.Verdict == bawn.Ask
	}
	for _, step := range []struct {
		what   string
		args   []string
		answer bawn.Answer
		asks   bool
	}{
		{"a request", []string{"PUT"}, says1(bawn.Allow, bawn.ForSession), false},
		{"a no", nil, says1(bawn.Deny, bawn.ForSession), false},
		{"a yes once", nil, says1(bawn.Allow, bawn.Once), true},
	} {
		a := bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "git.corp:443", Args: step.args}
		o := newOpen(approval.Question{Action: a})
		o.zone = network.Name
		if d.keep(o, network.digest(a, bawn.Decision{}), step.answer); asks(d) != step.asks {
			t.Errorf("after %s to a host, git push asks: %t; want %t", step.what, !step.asks, step.asks)
		}
	}
	later := New(Options{Session: "s", Kept: kept})
	defer later.Close()
	if !asks(later) {
		t.Error("a desk of the same session, later, does not know of the host")
	}
}
