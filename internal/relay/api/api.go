// Package api answers the calls of proto/bawn/v1: Connect handlers over what
// the relay has. It knows who calls and what they may; how they came in is the
// matter of who serves the handler.
//
// Without a caller every call is refused, and so is a method that has no row in
// the table of rights.
package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// A Caller is who calls. The zero Caller is nobody.
type Caller struct {
	Name     string // for the record: who answered
	Device   string // ID of the paired device; "" for a program of the user's
	ReadOnly bool   // may look, and change nothing
	Peer     string // address, for the record
}

type callerKey struct{}

// WithCaller says in a request's context who it is from.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok && c.Name != ""
}

// Options are what the services work on. Inbox, Recorder and Now must be set;
// calls for something else that is missing fail with "unavailable".
type Options struct {
	Inbox approval.Inbox
	// History returns settled questions, the latest first (approval.Store).
	History func(ctx context.Context, before time.Time, limit int) ([]approval.Record, error)
	// Sessions are those of this user.
	Sessions Sessions
	// AuditDir is the directory of the audit log.
	AuditDir string
	// Explain returns what "bawn policy explain --json" prints. Its error is the
	// caller's fault and is told.
	Explain func(ctx context.Context, m *bawnv1.PolicyServiceExplainRequest) ([]byte, error)
	// Devices are those that are paired with the web page.
	Devices Devices
	// Past lists the changes of sessions. *undo.Past is one.
	Past Past
	// Copies are those of sessions. *copies.Reviewer is one.
	Copies Copies
	// Touches ask for the touch of a device's passkey. It is the web page's.
	Touches Touches
	// System describes machine and relay; now is put in here.
	System func() *bawnv1.SystemServiceGetResponse
	// Status describes how the relay runs, and Stop ends it.
	Status   func(ctx context.Context) (*bawnv1.SystemServiceStatusResponse, error)
	Stop     func()
	Recorder bawn.Recorder
	Now      func() time.Time
	// Beat is how often a stream shows that it is alive; 0 is 20 s.
	Beat time.Duration
}

// Devices keep the devices of the web page. Their errors are *connect.Errors
// where the caller is to be told.
type Devices interface {
	Devices(ctx context.Context) ([]*bawnv1.Device, error)
	Revoke(ctx context.Context, id, by string) error
	Pair(ctx context.Context, readOnly bool) (*bawnv1.DeviceServicePairResponse, error)
	PushKey() string
	Subscribe(ctx context.Context, device string, m *bawnv1.DeviceServiceSubscribeRequest) error
	Unsubscribe(ctx context.Context, device string) error
}

// Limits of one call.
const (
	maxMessage  = 256 << 10
	defaultBeat = 20 * time.Second
)

// An API is the services over one relay.
type API struct {
	o       Options
	views   views
	verify  sync.Mutex // one check of the whole log at a time
	undoing sync.Mutex // one look at a session's changes at a time
	handler http.Handler
}

// New returns the services.
func New(o Options) (*API, error) {
	if o.Inbox == nil || o.Recorder == nil || o.Now == nil {
		return nil, errors.New("BUG(bawn): the API lacks an option")
	}
	if o.Beat == 0 {
		o.Beat = defaultBeat
	}
	a := &API{o: o}
	with := []connect.HandlerOption{connect.WithReadMaxBytes(maxMessage), connect.WithInterceptors(&gate{a})}
	mux := http.NewServeMux()
	mux.Handle(bawnv1connect.NewApprovalServiceHandler(&approvals{a}, with...))
	mux.Handle(bawnv1connect.NewSessionServiceHandler(&sessions{a}, with...))
	mux.Handle(bawnv1connect.NewAuditServiceHandler(&audits{a}, with...))
	mux.Handle(bawnv1connect.NewPolicyServiceHandler(&policies{a}, with...))
	mux.Handle(bawnv1connect.NewDeviceServiceHandler(&devices{a}, with...))
	mux.Handle(bawnv1connect.NewSystemServiceHandler(&systems{a}, with...))
	mux.Handle(bawnv1connect.NewUndoServiceHandler(&undos{a}, with...))
	mux.Handle(bawnv1connect.NewCopyServiceHandler(&reviews{a}, with...))
	a.handler = mux
	return a, nil
}

// ServeHTTP answers a call of the Caller in the request's context.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost { // Connect would take a GET of a method without effects
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	}
	a.handler.ServeHTTP(w, r)
}

// A right is what a method needs. The zero right is held by nobody.
type right uint8

const (
	_      right = iota
	look         // any caller
	change       // not a device that may only look
	local        // a program of the user's on this machine
	remote       // a paired device, also one that may only look
	hand         // a paired device that may change, whose passkey can be touched
)

// rights has a row for every method.
var rights = map[string]right{
	bawnv1connect.ApprovalServiceListProcedure:       look,
	bawnv1connect.ApprovalServiceGetProcedure:        look,
	bawnv1connect.ApprovalServiceWatchProcedure:      look,
	bawnv1connect.ApprovalServiceAnswerProcedure:     change,
	bawnv1connect.SessionServiceListProcedure:        look,
	bawnv1connect.SessionServiceWatchProcedure:       look,
	bawnv1connect.SessionServiceKillProcedure:        change,
	bawnv1connect.SessionServiceAttachProcedure:      look, // to type it has to be more: see Attach
	bawnv1connect.SessionServiceSendProcedure:        change,
	bawnv1connect.SessionServiceResizeProcedure:      change,
	bawnv1connect.AuditServiceQueryProcedure:         look,
	bawnv1connect.AuditServiceTimelineProcedure:      look,
	bawnv1connect.AuditServiceVerifyProcedure:        look,
	bawnv1connect.PolicyServiceExplainProcedure:      look,
	bawnv1connect.DeviceServiceListProcedure:         look,
	bawnv1connect.DeviceServiceRevokeProcedure:       look, // itself; others: see Revoke
	bawnv1connect.DeviceServicePairProcedure:         local,
	bawnv1connect.DeviceServicePushKeyProcedure:      remote,
	bawnv1connect.DeviceServiceSubscribeProcedure:    remote,
	bawnv1connect.DeviceServiceUnsubscribeProcedure:  remote,
	bawnv1connect.SystemServiceGetProcedure:          look,
	bawnv1connect.SystemServiceStatusProcedure:       local,
	bawnv1connect.SystemServiceStopProcedure:         local,
	bawnv1connect.CopyServiceListProcedure:           look,
	bawnv1connect.CopyServiceFilesProcedure:          look,
	bawnv1connect.CopyServiceLinesProcedure:          look,
	bawnv1connect.CopyServicePreviewProcedure:        hand,
	bawnv1connect.CopyServiceApplyProcedure:          hand, // with the touch: see Apply
	bawnv1connect.CopyServicePreviewDiscardProcedure: hand,
	bawnv1connect.CopyServiceDiscardProcedure:        hand, // with the touch: see Discard
	bawnv1connect.UndoServiceListProcedure:           look,
	bawnv1connect.UndoServiceDiffProcedure:           look,
	bawnv1connect.UndoServiceLinesProcedure:          look,
	bawnv1connect.UndoServicePreviewProcedure:        hand, // it keeps the present meanwhile
	bawnv1connect.UndoServiceUndoProcedure:           hand, // with the touch: see Undo
}

// Rights says of every method but those of AuthService who may call it, for the
// documents.
func Rights() map[string]string {
	words := map[right]string{
		look: "any caller", change: "any caller but a read-only device", local: "programs of this user, at the socket",
		remote: "paired devices", hand: "paired devices that are not read-only",
	}
	out := map[string]string{}
	for procedure, r := range rights {
		out[procedure] = words[r]
	}
	return out
}

// has reports whether the caller has the right.
func (c Caller) has(r right) bool {
	switch r {
	case look:
		return true
	case change:
		return !c.ReadOnly
	case local:
		return c.Device == "" && !c.ReadOnly
	case remote:
		return c.Device != ""
	case hand:
		return c.Device != "" && !c.ReadOnly
	}
	return false
}

// A gate stands in front of every method.
type gate struct{ a *API }

var _ connect.Interceptor = (*gate)(nil)

// WrapUnary is connect.Interceptor's.
func (g *gate) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, m connect.AnyRequest) (connect.AnyResponse, error) {
		if err := g.pass(ctx, m.Spec().Procedure); err != nil {
			return nil, err
		}
		return next(ctx, m)
	}
}

// WrapStreamingClient is connect.Interceptor's.
func (g *gate) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is connect.Interceptor's.
func (g *gate) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, c connect.StreamingHandlerConn) error {
		if err := g.pass(ctx, c.Spec().Procedure); err != nil {
			return err
		}
		return next(ctx, c)
	}
}

// pass refuses who may not call the method.
func (g *gate) pass(ctx context.Context, procedure string) error {
	c, ok := callerOf(ctx)
	if !ok {
		return connect.NewError(connect.CodeUnauthenticated, errors.New("nobody is known to call"))
	}
	if !c.has(rights[procedure]) {
		return g.a.refuse(ctx, c, procedure)
	}
	return nil
}

// refuse records that somebody may not do what they asked for.
func (a *API) refuse(ctx context.Context, c Caller, procedure string) error {
	why := "this caller may not do that"
	if c.ReadOnly {
		why = "this device may only look"
	}
	if err := a.record(ctx, c, "refuse", strings.TrimPrefix(procedure, "/"), bawn.Deny, why); err != nil {
		return err
	}
	return connect.NewError(connect.CodePermissionDenied, errors.New(why))
}

// record writes what a caller did, or may not do. What can't be recorded fails.
func (a *API) record(ctx context.Context, c Caller, operation, resource string, v bawn.Verdict, why string) error {
	err := a.o.Recorder.Record(ctx, bawn.Event{
		Kind: "relay", Operation: operation, Resource: resource, Requested: v, Resolved: v, Source: "user", Reason: why,
		Details: map[string]string{"by": c.Name, "device": c.Device, "peer": c.Peer},
	})
	if err != nil {
		return connect.NewError(connect.CodeUnavailable, errors.New("this can't be recorded, so it does not happen"))
	}
	return nil
}

// missing is the error of a call for something that this relay has not.
func missing(what string) error {
	return connect.NewError(connect.CodeUnavailable, errors.New("this relay has no "+what))
}

// inside hides what only the log may know; ours and connect's pass.
func inside(err error) error {
	var told *connect.Error
	if err == nil || errors.As(err, &told) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return connect.NewError(connect.CodeCanceled, err)
	}
	return connect.NewError(connect.CodeInternal, err)
}
