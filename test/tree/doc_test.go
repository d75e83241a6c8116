// Package tree_test proves that a session which a guest starts is never freer
// than the guest's own: with the real programs, by what happens inside and
// outside, and with the control that the same flags by the human do give it.
package tree_test
