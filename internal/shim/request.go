//go:build linux || darwin

package shim

import (
	"context"
	"errors"
	"fmt"

	"github.com/bawn-dev/bawn/internal/intent"
)

// RequestChange asks the human, through the session socket, for a change of what the session may
// do, in the words of `bawn request`, and waits until it is answered or ctx ends.
// On an error nothing has been granted.
func RequestChange(ctx context.Context, want []string, why string) (granted bool, answer string, err error) {
	dir, err := directory()
	if err != nil {
		return false, "", fmt.Errorf("the working directory can't be named: %w", err)
	}
	return requestChange(ctx, intent.Request{Want: want, Why: why, Dir: dir}, Socket)
}

func requestChange(ctx context.Context, q intent.Request, socket string) (bool, string, error) {
	r, err := once(ctx, intent.Hello{Request: &q}, socket)
	switch {
	case err != nil:
		return false, "", err
	case r.Denied != nil:
		return false, r.Denied.Reason, nil
	case r.Answer == nil:
		return false, "", errors.New("the session socket has answered something else")
	}
	return r.Answer.Granted, r.Answer.Why, nil
}

// WhyHidden asks the session socket which rule hides a place, if one does.
func WhyHidden(ctx context.Context, path string) ([]intent.Reason, error) {
	return why(ctx, intent.Why{Path: path})
}

// Why asks the session socket what the session has refused last: at most n refusals, all
// that are kept for 0, the newest last.
func Why(ctx context.Context, n int) ([]intent.Reason, error) {
	return why(ctx, intent.Why{Last: n})
}

func why(ctx context.Context, w intent.Why) ([]intent.Reason, error) {
	r, err := once(ctx, intent.Hello{Why: &w}, Socket)
	switch {
	case err != nil:
		return nil, err
	case r.Denied != nil:
		return nil, errors.New(r.Denied.Reason)
	case r.Why == nil:
		return nil, errors.New("the session socket has answered something else")
	}
	return r.Why.List, nil
}

// once says one thing to a session socket and returns its one answer.
func once(ctx context.Context, hello intent.Hello, socket string) (r intent.Reply, err error) {
	conn, err := dial(socket)
	if err != nil {
		return r, fmt.Errorf("the session socket is not to be reached: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := conn.Send(&hello); err != nil {
		return r, fmt.Errorf("it can't be put to the session socket: %w", err)
	}
	files, err := conn.Receive(&r)
	for _, f := range files {
		f.Close() // the session socket sends none
	}
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err != nil:
		return r, fmt.Errorf("the session socket has closed without an answer: %w", err)
	}
	return r, nil
}
