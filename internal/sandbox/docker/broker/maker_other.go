//go:build !linux

package broker

import (
	"os"
	"strconv"
)

// Self is this process. When it started is not known here, so nobody can tell
// that it has ended: what a killed one leaves stays until somebody removes it.
func Self() (Maker, error) {
	return Maker{process: strconv.Itoa(os.Getpid()) + ":0", space: "0"}, nil
}

func ended(string) bool { return false }
