//go:build !linux && !darwin

// Package shim is what sh, bash and other shells are in a reasoning zone, on
// Linux and macOS.
package shim

import (
	"context"
	"errors"

	"github.com/bawn-dev/bawn/internal/intent"
)

// Main executes nothing.
func Main([]string, []string) int { return 126 }

// Session starts nothing.
func Session(_, _ []string) int { return 126 }

// Tools serves nothing.
func Tools([]string) int { return 126 }

// Request asks nobody.
func Request([]string, string) (granted string, code int) { return "", 126 }

// Shell executes nothing.
func Shell([]string, []string) (own []string, code int) { return nil, 126 }

// Judge allows nothing.
func Judge(context.Context, intent.Judge) (intent.Verdict, error) {
	return intent.Verdict{}, errors.New("there are no sessions with a socket on this system")
}

// PrefixCall is false: there are no zones here.
func PrefixCall([]string) (line string, ok bool) { return "", false }

// Prefix executes nothing.
func Prefix(string, []string) int { return 126 }
