package secrets

import (
	"context"
	"time"
)

// hasBus is true: the Keychain needs none.
func hasBus([]string) bool { return true }

// keyringThere is true: every macOS has a Keychain.
func keyringThere(context.Context, []string, time.Duration) (bool, error) { return true, nil }
