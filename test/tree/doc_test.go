// Package tree_test tests with the real programs that a session started by a guest never
// has more rights than the guest's own session. In the control the user gives the same
// flags, and they take effect.
package tree_test
