//go:build !linux

package gitstore

import "github.com/bawn-dev/bawn/internal/sandbox/native"

// Confined has nothing here in which a git could be confined.
func Confined(*native.Provider) func(View) (Untrusted, error) {
	return func(View) (Untrusted, error) { return nil, errUnsupported }
}
