package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/relay"
	"github.com/bawn-dev/bawn/internal/relay/api"
	"github.com/bawn-dev/bawn/internal/relaycli"
	"github.com/bawn-dev/bawn/internal/verb"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// isRelay reports whether the words are a verb of the relay and its human.
func isRelay(args []string) bool { return len(args) > 0 && slices.Contains(relaycli.Verbs, args[0]) }

// runRelay runs such a verb.
func runRelay(args []string) int {
	return relaycli.Main(args, &relaycli.Env{World: verb.World{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()}, Approvals: approvals, Devices: devices, Serve: serve, Now: time.Now})
}

// socket returns the path of the relay's API and the directory of its log.
func socket() (path, state string, err error) {
	if state, err = places.State(os.Getenv); err != nil {
		return "", "", err
	}
	return filepath.Join(places.Runtime(os.Getenv, state), places.APISocket), state, nil
}

// approvals reaches the questions of the user's relay.
func approvals(ctx context.Context, start bool) (bawnv1connect.ApprovalServiceClient, error) {
	path, state, err := socket()
	if err != nil {
		return nil, err
	}
	switch {
	case start:
		if err := startRelay(ctx, path, state); err != nil {
			return nil, err
		}
	case !link.Listens(path):
		return nil, relaycli.ErrNoRelay
	}
	return bawnv1connect.NewApprovalServiceClient(api.Client(path), "http://relay"), nil
}

// startRelay starts a relay on demand where none runs.
func startRelay(ctx context.Context, path, state string) error {
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(state, 0o700)
	}
	if err != nil {
		return err
	}
	p := link.Program{Path: self, Args: []string{"serve", "--on-demand"}, Environ: os.Environ(), Socket: path, Log: filepath.Join(state, relay.LogName)}
	return p.Ensure(ctx)
}

// devices reaches the devices of the relay's web page.
func devices(context.Context) (bawnv1connect.DeviceServiceClient, error) {
	path, _, err := socket()
	return bawnv1connect.NewDeviceServiceClient(api.Client(path), "http://relay"), err
}

// serve is the relay.
func serve(ctx context.Context, s relaycli.Serving) error {
	if s.Unit {
		return writeUnit(s)
	}
	state, err := places.State(os.Getenv)
	if err != nil {
		return err
	}
	return relay.Serve(ctx, relay.Options{
		Runtime: places.Runtime(os.Getenv, state), State: state, AuditDir: filepath.Join(state, "audit"),
		OnDemand: s.OnDemand, Environ: os.Environ(), Stderr: os.Stderr, Frontends: []relay.Frontend{page(s, state)},
	})
}

// writeUnit prints how the system runs the relay: by the program of this name
// beside us, else by ourselves, which serves as well.
func writeUnit(s relaycli.Serving) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if bawn := filepath.Join(filepath.Dir(program), "bawn"); isFile(bawn) {
		program = bawn
	}
	words, err := s.Words()
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(relay.Units(runtime.GOOS, append([]string{program}, words...)...))
	return err
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
