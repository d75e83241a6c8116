package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

func itoa(n int) string { return strconv.Itoa(n) }

// inEnviron looks for the secret variable in an environment of /proc.
func inEnviron(p string) error {
	text, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	for _, entry := range bytes.Split(text, []byte{0}) {
		if bytes.HasPrefix(entry, []byte(probe.SecretVariable+"=")) {
			return nil
		}
	}
	return nothing
}

// anyEnviron looks into every process there is but this one and those that
// carry the same environment because they started it.
func anyEnviron(fx Fixtures) error {
	list, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(list) == 0 {
		return unix.ENOENT
	}
	for _, p := range list {
		if inEnviron(p) == nil {
			return nil
		}
	}
	return nothing
}
