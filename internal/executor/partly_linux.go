package executor

import (
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/landlock"
)

// Partly says, before a session starts, what its executor will not be able to
// enforce on this machine: what Ready.Apart tells afterwards.
func Partly() []bawn.Capability {
	abi, _ := landlock.ABI() // 0 with an error
	return partly(abi)
}

func partly(abi int) []bawn.Capability {
	if abi >= landlock.ScopeABI {
		return nil
	}
	return []bawn.Capability{{
		Attribute: "executor", Strength: bawn.Partly, How: "commands can't trace the executor or read its memory",
		Why:    fmt.Sprintf("Landlock (ABI %d) does not confine signals: a command can end the executor, and every command with it", abi),
		Remedy: "use Linux 6.12 or newer",
	}}
}
