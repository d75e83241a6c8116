package acpcli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/acp"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/peercred"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/shell"
	"github.com/bawn-dev/bawn/internal/verb"
)

// An acpAsks answers the questions of an agent's session while an editor is
// connected. It asks the human, who may have said yes already, and everybody
// else whom such a session asks. The first answer stands.
type acpAsks struct {
	*asking.Below
	socket   string
	listener net.Listener
	started  chan struct{} // closed once pid and editor are there

	pid    int
	editor editor

	yes approval.Answers // ahead of what it was given to
}

// An editor asks its human: an *acp.Proxy.
type editor interface {
	Ask(ctx context.Context, a bawn.Action, reason string) (bawn.Answer, error)
}

// yesHolds is how long a yes of the editor waits for what it was given to.
const yesHolds = 10 * time.Minute

// asks makes the socket at which the agent's session asks.
func (a *acpServer) asks() (*acpAsks, error) {
	state, err := settings.StateDir(&a.env.World)
	if err != nil {
		return nil, err
	}
	dir := settings.RuntimeDir(&a.env.World, state)
	q := &acpAsks{Below: a.session.Prompter.Below(), socket: filepath.Join(dir, "acp-"+rand.Text()[:launch.AsksName]+".sock"), started: make(chan struct{})}
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		q.listener, err = net.Listen("unix", q.socket)
	}
	if err == nil {
		err = os.Chmod(q.socket, 0o600)
	}
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make the socket for the questions of the agent's session: %w", err)}
	}
	server := &link.Server{Prompter: q, Admit: q.admit}
	go func() { _ = server.Serve(q.listener) }() // until close
	return q, nil
}

func (q *acpAsks) close() { _ = q.listener.Close() } // removes it

// host and at say who asks, and whom.
func (q *acpAsks) host(pid int) { q.pid = pid }

func (q *acpAsks) at(p *acp.Proxy) {
	q.editor = p
	close(q.started)
}

// admit wants the host of the agent's session.
func (q *acpAsks) admit(c net.Conn) error {
	<-q.started
	peer, err := peercred.Of(c)
	if err != nil {
		return err
	}
	defer peer.Close()
	if peer.PID != q.pid || peer.UID != os.Geteuid() {
		return &peercred.RefusedError{PID: peer.PID, UID: peer.UID, Why: "it is not the session of this editor's agent"}
	}
	return nil
}

// permitted notes a yes of the editor's to a command: one, however often it is said.
func (q *acpAsks) permitted(a bawn.Action) {
	if a.Kind != bawn.Command || len(a.Args) > 0 {
		return
	}
	text, err := shell.Canonical(a.Resource, shell.Bash)
	if err != nil {
		return
	}
	d, now := command(text, a.Dir), time.Now()
	q.yes.Spend(d, now)
	q.yes.Ahead(d, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.Once, By: "editor"}, now.Add(yesHolds))
}

// command is the digest of a command line, in its canonical words.
func command(text, dir string) approval.Digest {
	return approval.DigestOf("", &bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: text, Dir: dir}, "")
}

// spend takes a yes to the command of a question.
func (q *acpAsks) spend(a *bawn.Action) (bawn.Answer, bool) {
	if a.Kind != bawn.Command || len(a.Args) > 0 {
		return bawn.Answer{}, false
	}
	return q.yes.Spend(command(a.Resource, a.Dir), time.Now())
}

// Ask puts a question of the session. What the session refuses to ask is denied,
// whatever the editor would say: it answers alone only where nobody else is.
func (q *acpAsks) Ask(ctx context.Context, question approval.Question) (bawn.Answer, error) {
	if yes, ok := q.spend(&question.Action); ok {
		return yes, nil
	}
	type outcome struct {
		answer bawn.Answer
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	session, editor := make(chan outcome, 1), make(chan outcome, 1)
	go func() {
		answer, err := q.Below.Ask(ctx, question)
		session <- outcome{answer, err}
	}()
	go func() {
		a := question.Action
		a.Resource = cmp.Or(question.Canonical, a.Resource) // what would run
		answer, err := q.editor.Ask(ctx, a, question.Reason)
		editor <- outcome{answer, err}
	}()
	var here, there outcome
	select {
	case here = <-session:
		if !errors.Is(here.err, asking.ErrNobody) {
			return here.answer, here.err
		}
		there = <-editor
	case there = <-editor:
		if there.err != nil {
			here = <-session
		}
	}
	switch {
	case there.err == nil:
		return there.answer, nil
	case here.err == nil:
		return here.answer, nil
	}
	return bawn.Answer{}, errors.Join(here.err, there.err)
}
