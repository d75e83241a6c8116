package sdk_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/sdk"
)

func ExamplePolicy() {
	policy, err := sdk.NewPolicy([]byte(`
[[rule]]
kind = "command"
pattern = "npm publish *"
verdict = "deny"
reason = "releases are made by CI"
`), sdk.Situation{Mode: bawn.ModeNormal, Workspace: "/home/ada/shop", Home: "/home/ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range []string{"git status", "git push --force", "npm publish"} {
		d, err := policy.Decide(context.Background(), bawn.Action{
			Kind: bawn.Command, Operation: bawn.Exec, Resource: line, Dir: "/home/ada/shop",
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s\n", line, d.Verdict)
	}
	// Output:
	// git status: allow
	// git push --force: ask
	// npm publish: deny
}

// A guest's exit code is no error; that Bawn could not start it is one.
func ExampleCommand() {
	c := &sdk.Command{
		Args:   []string{"npm", "test"},
		Dir:    "/home/ada/shop",
		Flags:  []string{"--timeout", "5m"},
		Stdout: os.Stdout,
		Stderr: os.Stderr,
	}
	result, err := c.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("exit code", result.Exit)
	for _, d := range result.Denied {
		fmt.Println("denied:", d.Operation, d.Resource)
	}
}

func ExampleLog() {
	dir, err := os.MkdirTemp("", "log-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	log := sdk.Log{Dir: filepath.Join(dir, "audit")} // of a program's own; the user's is sdk.UserLog
	for event, err := range log.Events("") {
		fmt.Println(event.Time, event.Resource, event.Resolved, err)
	}
	records, err := log.Verify()
	fmt.Println(records, err)
	// Output: 0 <nil>
}
