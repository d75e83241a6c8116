//go:build !linux

package broker

import "testing"

func around(m *testing.M) int { return m.Run() }
