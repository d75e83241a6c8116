// Package p10_test attacks the human's authority from inside each zone of a
// split session and from a plain one: the relay's API and page, its
// sockets, its policy, state, keys and life, the executor, and the terminal. A
// relay serves, a session of somebody else's waits for an answer, and nothing
// but the human's own answer, from outside, may make it go on.
//
// Each attack has its control: the same words from outside, which succeed. The
// test binary is the guest too.
package p10_test
