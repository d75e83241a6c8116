package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/relay"
	"github.com/bawn-dev/bawn/internal/relaycli"
	"github.com/bawn-dev/bawn/internal/verb"
)

// isRelay reports whether the words are a verb of the relay and its human.
func isRelay(args []string) bool { return len(args) > 0 && slices.Contains(relaycli.Verbs, args[0]) }

// runRelay runs such a verb.
func runRelay(args []string) int {
	return relaycli.Main(args, &relaycli.Env{World: verb.World{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()}, Desk: desk, Devices: devices, Serve: serve, Now: time.Now})
}

// desk reaches the relay of the user.
func desk(ctx context.Context, start bool) (approval.Desk, error) {
	state, err := places.State(os.Getenv)
	if err != nil {
		return nil, err
	}
	runtime := places.Runtime(os.Getenv, state)
	o := link.Options{Path: filepath.Join(runtime, places.FacesSocket)}
	if start {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		p := &link.Program{
			Path: self, Args: []string{"serve", "--on-demand"}, Environ: os.Environ(), Socket: o.Path, Log: filepath.Join(state, relay.LogName),
		}
		o.Start = func(ctx context.Context) error {
			if err := os.MkdirAll(state, 0o700); err != nil {
				return err
			}
			return p.Ensure(ctx)
		}
	}
	client, err := link.Dial(ctx, o)
	switch {
	case err == nil:
		return client, nil
	case !start && (errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)):
		return nil, relaycli.ErrNoRelay
	}
	return nil, err
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
		OnDemand: s.OnDemand, Environ: os.Environ(), Stderr: os.Stderr, Doors: []relay.Door{verbs, page(s, state)},
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

// verbs lets the human's own verbs in, and nobody whom a session has started.
func verbs(ctx context.Context, r *relay.Relay) error {
	l, err := r.Listen(places.FacesSocket)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() }) // ends Serve
	s := link.Server{Desk: r.Queue, Admit: r.AdmitFace(places.FacesSocket), Keyless: r.Keyless(places.FacesSocket), Faces: true, Log: r.Log}
	return s.Serve(l)
}
