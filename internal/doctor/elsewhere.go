package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// CapabilitiesFlag is the flag of "bawn doctor", which bawnd has as well, that
// prints what one provider enforces, as JSON.
const CapabilitiesFlag = "capabilities"

// Elsewhere has the bawnd at path say what a provider enforces that only bawnd
// has, and waits no longer than patience. dir is where it starts, in environ.
// What goes wrong is the reason why nothing is enforced.
func Elsewhere(path, name, dir string, environ []string, patience time.Duration) []bawn.Capability {
	var list []bawn.Capability
	late, err := ask(path, dir, environ, patience, &list, "--"+CapabilitiesFlag, name)
	switch {
	case err == nil:
		return list
	case late:
		return Nothing(err.Error(), hangs)
	}
	return Nothing(fmt.Sprintf("ask %s: %v", path, err), Install)
}

// EngineFlag is the flag of bawnd's "doctor" that prints what it has found out
// about the engine of guests' containers, as JSON.
const EngineFlag = "engine"

// EngineElsewhere has the bawnd at path say whether guests may make containers;
// nil where the machine has no engine.
func EngineElsewhere(path, dir string, environ []string, patience time.Duration) *Check {
	var c *Check
	if _, err := ask(path, dir, environ, patience, &c, "--"+EngineFlag); err != nil {
		return &Check{Name: "containers of guests", Detail: err.Error(), Remedy: hangs}
	}
	return c
}

// ask reads what bawnd's doctor prints as JSON; late says that it has not
// answered in time.
func ask(path, dir string, environ []string, patience time.Duration, into any, flags ...string) (late bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"doctor"}, flags...)...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = environ, dir, time.Second
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	var exit *exec.ExitError
	switch {
	case err != nil && ctx.Err() != nil:
		return true, fmt.Errorf("%s has not answered within %v", path, patience)
	case errors.As(err, &exit) && len(exit.Stderr) > 0:
		err = errors.New(string(bytes.TrimSpace(exit.Stderr)))
	}
	return false, err
}

// Install is what to do where one of Bawn's two programs is missing.
const Install = "install both programs of one release in one directory: go build -o DIR ./cmd/bawn ./cmd/bawnd"

// hangs is what to do about an engine that does not answer.
const hangs = "see whether the engine hangs, and start that again"

// Nothing is what is enforced where something stands in the way of everything.
func Nothing(why, remedy string) (list []bawn.Capability) {
	for _, a := range sandbox.Attributes() {
		list = append(list, bawn.Capability{Attribute: a, Why: why, Remedy: remedy})
	}
	return list
}
