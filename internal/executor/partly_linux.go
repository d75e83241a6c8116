package executor

import (
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/landlock"
)

// Partly says, before a session starts, which protections its executor can't
// enforce on this machine: the same as Ready.Apart afterwards.
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
