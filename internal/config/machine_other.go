//go:build !linux && !darwin

package config

import "errors"

// ThisMachine can't measure this system.
func ThisMachine() (Machine, error) { return Machine{}, errors.ErrUnsupported }
