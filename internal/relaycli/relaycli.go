// Package relaycli holds the verbs of the relay's human: bawn serve,
// approvals, approve, deny and pair. They are linked into bawnd, since what draws a
// screen would cost every start of bawn.
package relaycli

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/verb"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// Verbs are the first words that are this package's.
var Verbs = []string{"serve", "approvals", "approve", "deny", "pair"}

// An Env is what a verb may use of the world around it.
type Env struct {
	verb.World
	// Approvals reaches the relay. With start it starts one if none runs;
	// without, the error is ErrNoRelay.
	Approvals func(ctx context.Context, start bool) (bawnv1connect.ApprovalServiceClient, error)
	// Devices reaches the relay that runs, for the devices of its web page.
	Devices func(ctx context.Context) (bawnv1connect.DeviceServiceClient, error)
	// System reaches the relay that runs, to look at it or end it.
	System func(ctx context.Context) (bawnv1connect.SystemServiceClient, error)
	// State is the directory of the relay's lock and of the mark that it was stopped.
	State func() (string, error)
	// Serve is the relay itself; it returns when that has ended.
	Serve func(ctx context.Context, o Serving) error
	// Background starts this program with these words, and returns when it serves.
	Background func(ctx context.Context, words []string) error
	// StopUnits tells the system to start the relay no more.
	StopUnits func(ctx context.Context) error
	Now       func() time.Time
}

// errGuest refuses a caller that runs in a session. The relay refuses it as well,
// by its process and not by what it says.
var errGuest = &verb.Error{Code: verb.ExitDenied, Err: errors.New("this is a guest: only the human may answer, from outside of the session"), Hint: "ask the human; \"bawn request\" asks for more"}

// Commands returns the commands of the Verbs.
func Commands(e *Env) []*cobra.Command {
	return []*cobra.Command{newApprovals(e), newAnswer(e, approve), newAnswer(e, deny), newServe(e), newPair(e)}
}

// Main runs one of the Verbs and returns the exit code.
func Main(args []string, e *Env) int {
	root := &cobra.Command{Use: "bawn", SilenceErrors: true, SilenceUsage: true}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(Commands(e)...)
	if len(args) > 1 && strings.HasPrefix(args[1], cobra.ShellCompRequestCmd) { // VERB __complete …
		args = append([]string{args[1], args[0]}, args[2:]...)
	}
	return verb.Run(root, args, &e.World, func(err error) int {
		code, hint := explain(err)
		verb.Report(&e.World, err, hint)
		return code
	})
}

// explain returns the exit code of an error and what to do about it.
func explain(err error) (code int, hint string) {
	var mine *verb.Error
	if errors.As(err, &mine) {
		return mine.Code, mine.Hint
	}
	if errors.Is(err, link.ErrStopped) {
		return verb.ExitUsage, ""
	}
	switch connect.CodeOf(err) {
	case connect.CodeNotFound, connect.CodeInvalidArgument:
		return verb.ExitUsage, ""
	case connect.CodePermissionDenied:
		return verb.ExitDenied, "only the human answers, from outside of every session"
	}
	return verb.ExitInternal, "\"bawn serve\" runs the relay; \"bawn doctor\" shows what is wrong"
}

// ErrNoRelay says that no relay runs, and that none may be started.
var ErrNoRelay = errors.New("no relay runs")

// reach returns a client of the relay, unless a guest asks.
func (e *Env) reach(ctx context.Context, start bool) (bawnv1connect.ApprovalServiceClient, error) {
	if e.Getenv("BAWN_SESSION") != "" {
		return nil, errGuest
	}
	return e.Approvals(ctx, start)
}

// follow sends all that is pending and then each change, until ctx ends or the
// relay does; then it closes the channel.
func follow(ctx context.Context, relay bawnv1connect.ApprovalServiceClient) (<-chan *bawnv1.Approval, error) {
	changes, err := relay.Watch(ctx, &bawnv1.ApprovalServiceWatchRequest{})
	if err != nil {
		return nil, err
	}
	out := make(chan *bawnv1.Approval)
	go func() {
		defer close(out)
		defer changes.Close()
		for changes.Receive() {
			if changes.Msg().GetApproval() == nil { // it shows that the stream is alive
				continue
			}
			select {
			case out <- changes.Msg().GetApproval():
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// pending returns what waits for an answer, the oldest first.
func pending(ctx context.Context, relay bawnv1connect.ApprovalServiceClient) ([]*bawnv1.Approval, error) {
	list, err := relay.List(ctx, &bawnv1.ApprovalServiceListRequest{Pending: true})
	return list.GetApprovals(), err
}

func (e *Env) writeJSON(v any) error {
	return verb.JSONLines(e.Stdout).Encode(v)
}
