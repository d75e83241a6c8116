// Command library is an agent's tool in thirty lines: it decides about a command line by
// the policy, runs it as a guest, and prints what Bawn has recorded of it.
//
//	go run ./examples/library 'make test'
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/sdk"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "library: want one command line")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, line string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	policy, err := sdk.NewPolicy(nil, sdk.Situation{Mode: bawn.ModeNormal, Contained: bawn.ContainedFully, Workspace: dir})
	if err != nil {
		return err
	}
	d, err := policy.Decide(ctx, bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: line, Dir: dir})
	if err != nil || d.Verdict != bawn.Allow {
		fmt.Fprintf(out, "%s: %s: %s\n", line, d.Verdict, d.Reason)
		return err
	}
	result, err := (&sdk.Command{Args: []string{"sh", "-c", d.Canonical}, Env: append(os.Environ(), d.Env...), Stdout: out, Stderr: os.Stderr}).Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "exit code", result.Exit)
	log, err := sdk.UserLog()
	if err != nil {
		return err
	}
	for event, err := range log.Events(result.Session) {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "recorded:", event.Kind, event.Operation, event.Resolved)
	}
	return nil
}
