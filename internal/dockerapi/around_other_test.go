//go:build !linux

package dockerapi

import "testing"

func around(m *testing.M) int { return m.Run() }
