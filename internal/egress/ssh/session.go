package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/bawn-dev/bawn/internal/egress/dial"
	"github.com/bawn-dev/bawn/internal/egress/git"
)

// gitProtocol is what git puts into GIT_PROTOCOL (git(1)).
var gitProtocol = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^version=[0-9](:version=[0-9])*$`) })

// accept takes session channels until the connection ends, and waits for them.
// Any other channel is a connection to somewhere (direct-tcpip, streamlocal).
func (t target) accept(ctx context.Context, channels <-chan ssh.NewChannel) {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for wanted := range channels {
		if wanted.ChannelType() != "session" {
			reject(wanted, ssh.Prohibited, "bawn: only git commands are carried")
			continue
		}
		select {
		case t.Room.sessions <- struct{}{}:
		default:
			reject(wanted, ssh.ResourceShortage, fmt.Sprintf("bawn: %d git commands of this session use SSH already; wait for one to end", maxSessions))
			continue
		}
		all.Go(func() {
			defer func() { <-t.Room.sessions }()
			t.session(ctx, wanted)
		})
	}
}

// reject answers a channel that is not opened; the guest may be gone already.
func reject(c ssh.NewChannel, reason ssh.RejectionReason, text string) {
	if err := c.Reject(reason, text); err != nil {
		return
	}
}

// session serves one channel: at most one command, nothing interactive.
func (t target) session(ctx context.Context, wanted ssh.NewChannel) {
	channel, requests, err := wanted.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	protocol := ""
	for r := range requests {
		switch r.Type {
		case "env":
			protocol = environment(r, protocol)
			continue
		case "exec", "shell", "subsystem":
		default: // pty, X11, agent forwarding, signals
			answer(r, false)
			continue
		}
		answer(r, true) // so that the reason can be read
		go func() {
			defer cancel() // the guest has closed the channel
			ssh.DiscardRequests(requests)
		}()
		t.finish(ctx, channel, r, protocol)
		return
	}
}

// answer replies to a request that wants it; the guest may be gone already.
func answer(r *ssh.Request, ok bool) {
	if r.WantReply && r.Reply(ok, nil) != nil {
		return
	}
}

// environment takes GIT_PROTOCOL and no other variable.
func environment(r *ssh.Request, before string) string {
	var v struct{ Name, Value string }
	ok := ssh.Unmarshal(r.Payload, &v) == nil && v.Name == "GIT_PROTOCOL" && len(v.Value) < 64 && gitProtocol().MatchString(v.Value)
	answer(r, ok)
	if ok {
		return v.Value
	}
	return before
}

// finish carries the command out, tells the guest what became of it, and ends
// the session.
func (t target) finish(ctx context.Context, channel ssh.Channel, r *ssh.Request, protocol string) {
	status, err := t.execute(ctx, channel, r, protocol)
	if err != nil {
		fmt.Fprintf(channel.Stderr(), "bawn: refused: %s\n", dial.Told(err))
		status = 128
	}
	payload := ssh.Marshal(struct{ Status uint32 }{status})
	if _, err := channel.SendRequest("exit-status", false, payload); err != nil {
		return
	}
}

func (t target) execute(ctx context.Context, channel ssh.Channel, r *ssh.Request, protocol string) (uint32, error) {
	var asked struct{ Command string }
	if r.Type != "exec" || ssh.Unmarshal(r.Payload, &asked) != nil {
		return 0, fmt.Errorf("%s sessions are not carried on to %q; only git commands are", r.Type, t.host)
	}
	command, err := git.ParseCommand(asked.Command)
	if err != nil {
		return 0, err
	}
	if !validUser(t.user) {
		return 0, fmt.Errorf("user %.80q; want a name of printable ASCII without quotes", t.user)
	}
	if t.Named != nil {
		command = command.As(t.Named(t.request(command.Operation)))
	}
	if err := t.Permit(ctx, t.request(command.Operation)); err != nil {
		return 0, err
	}
	client, err := t.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	return t.carry(ctx, channel, client, command, protocol)
}

// carry runs the command on the real host between the guest's streams.
func (t target) carry(ctx context.Context, channel ssh.Channel, client *ssh.Client, command git.Command, protocol string) (uint32, error) {
	session, err := client.NewSession()
	if err != nil {
		return 0, fmt.Errorf("open a session on %q: %w", t.host, err)
	}
	defer session.Close()
	passProtocol(session, protocol)
	session.Stdout, session.Stderr = channel, channel.Stderr()
	stdin, err := session.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := session.Start(command.String()); err != nil {
		return 0, fmt.Errorf("start %q on %q: %w", command, t.host, err)
	}
	sent := make(chan error, 1)
	go func() {
		err := t.send(ctx, stdin, channel, command)
		sent <- err
		if err != nil {
			session.Close() // a refused push must not linger
		}
	}()
	status := exitStatus(session.Wait())
	select {
	case err := <-sent:
		return status, err
	default: // the server has ended first, and the guest's further bytes are dropped
		return status, nil
	}
}

// passProtocol hands GIT_PROTOCOL on. A server that does not take it talks
// version 0, which git understands.
func passProtocol(session *ssh.Session, protocol string) {
	if protocol == "" {
		return
	}
	if err := session.Setenv("GIT_PROTOCOL", protocol); err != nil {
		return
	}
}

// send passes on the guest's bytes: all of them for a fetch, and for a push
// none before the refs have been judged.
func (t target) send(ctx context.Context, to io.WriteCloser, from io.Reader, command git.Command) error {
	defer to.Close()
	if command.Kind == git.Push && !command.LFS {
		op, again, err := t.Inspector.Push(command.Operation, from)
		if errors.Is(err, git.ErrNoCommands) {
			return nil
		}
		if err != nil {
			return err
		}
		defer again.Close()
		if err := t.Permit(ctx, t.request(op)); err != nil {
			return err
		}
		from = again
	}
	if _, err := io.Copy(to, from); err != nil {
		return nil // one side has gone; the exit status says the rest
	}
	return nil
}

// exitStatus is a shell's exit code.
func exitStatus(err error) uint32 {
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitStatus() != 0:
		return uint32(exit.ExitStatus())
	}
	return 255
}
