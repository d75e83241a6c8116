package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/bawn-dev/bawn/internal/redact"
)

// How long the engine may take. One that hangs makes an error, never a wait.
const (
	createTime = 30 * time.Second // to create and to start a container
	callTime   = 10 * time.Second // for everything else
)

// An EngineError says that the engine did not do something.
type EngineError struct {
	Host   string // its socket
	What   string // "create the container"
	Err    error
	Remedy string
}

// Error is one line.
func (e *EngineError) Error() string {
	text := fmt.Sprintf("the container engine at %q did not %s: %s", e.Host, e.What, redact.Visible(e.Err.Error()))
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap returns what went wrong.
func (e *EngineError) Unwrap() error { return e.Err }

// errAbsent is the error of a connection that nobody accepts.
var errAbsent = errors.New("nobody listens there")

// An engine is a connection to one. Each call to it has a deadline.
type engine struct {
	host   string
	client *client.Client
	life   time.Duration // of most calls; createTime and callTime in earnest
	slow   time.Duration // of those that create and start
}

// connect prepares a connection; nothing is sent yet.
func connect(host string) (*engine, error) {
	if err := checkHost(host); err != nil {
		return nil, err
	}
	c, err := client.New(client.WithHost(host))
	if err != nil {
		return nil, &OptionError{"host", host, err.Error(), ""}
	}
	return &engine{host: host, client: c, life: callTime, slow: createTime}, nil
}

// call bounds one call and says what did not happen.
func (e *engine) call(parent context.Context, limit time.Duration, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(parent, limit)
	defer cancel()
	err := f(ctx)
	if err == nil {
		return nil
	}
	out := &EngineError{Host: e.host, What: what, Err: err}
	switch {
	case ctx.Err() != nil && parent.Err() == nil:
		out.Err = fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded)
		out.Remedy = "is it hanging? \"docker info\" tells; restart it"
	case client.IsErrConnectionFailed(err) && strings.Contains(err.Error(), "permission denied"):
		out.Err = fs.ErrPermission
		out.Remedy = "join the group of its socket, or use a rootless engine"
	case client.IsErrConnectionFailed(err):
		out.Err = errAbsent
		out.Remedy = "start it, or say where it is: host under [isolation.docker_options]"
	}
	return out
}

// info asks who it is and what it can do.
func (e *engine) info(ctx context.Context) (i system.Info, err error) {
	err = e.call(ctx, e.life, "say what it is", func(ctx context.Context) error {
		r, err := e.client.Info(ctx, client.InfoOptions{})
		i = r.Info
		return err
	})
	return i, err
}

// create makes a container and returns its ID.
func (e *engine) create(ctx context.Context, o client.ContainerCreateOptions) (id string, err error) {
	err = e.call(ctx, e.slow, "create the container", func(ctx context.Context) error {
		r, err := e.client.ContainerCreate(ctx, o)
		id = r.ID
		return err
	})
	return id, err
}

// start starts a container.
func (e *engine) start(ctx context.Context, id string) error {
	return e.call(ctx, e.slow, "start the container", func(ctx context.Context) error {
		_, err := e.client.ContainerStart(ctx, id, client.ContainerStartOptions{})
		return err
	})
}

// inspect says how a container is.
func (e *engine) inspect(ctx context.Context, id string) (c container.InspectResponse, err error) {
	err = e.call(ctx, e.life, "describe the container", func(ctx context.Context) error {
		r, err := e.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		c = r.Container
		return err
	})
	return c, err
}

// How long to wait before an engine is asked again: at all, and at most where it
// says by itself when a container is gone.
const (
	pause  = 30 * time.Millisecond
	gently = time.Second
)

// removed waits until it is worth asking again about a container that the engine
// is busy with; false says that the time is over.
func (e *engine) removed(ctx context.Context, id string) bool {
	short, cancel := context.WithTimeout(ctx, gently)
	defer cancel()
	wait := e.client.ContainerWait(short, id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select {
	case <-wait.Result:
		return true
	case <-short.Done():
		return ctx.Err() == nil
	case <-wait.Error: // it is gone, or this engine knows no such wait
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// remove ends and removes a container with its anonymous volumes, and returns
// once it is not there. An engine that is removing it by itself, or is in the
// middle of something with it, is asked again until its time is over.
func (e *engine) remove(ctx context.Context, id string) error {
	return e.call(ctx, e.life, "remove the container", func(ctx context.Context) error {
		for {
			_, err := e.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			if err == nil || cerrdefs.IsNotFound(err) {
				return nil
			}
			if !cerrdefs.IsConflict(err) && !cerrdefs.IsInternal(err) {
				return err
			}
			if !e.removed(ctx, id) {
				return err
			}
		}
	})
}
