//go:build !linux

package gitstore

import "github.com/bawn-dev/bawn/internal/sandbox"

func sameEntry(sandbox.PoolEntry) bool { return false }
