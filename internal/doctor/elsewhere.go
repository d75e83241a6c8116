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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "doctor", "--"+CapabilitiesFlag, name)
	cmd.Env, cmd.Dir, cmd.WaitDelay = environ, dir, time.Second
	out, err := cmd.Output()
	var list []bawn.Capability
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return list
	case ctx.Err() != nil:
		return Nothing(fmt.Sprintf("%s has not answered within %v", path, patience), hangs)
	case errors.As(err, &exit) && len(exit.Stderr) > 0:
		err = errors.New(string(bytes.TrimSpace(exit.Stderr)))
	}
	return Nothing(fmt.Sprintf("ask %s: %v", path, err), Install)
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
