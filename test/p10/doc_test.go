// Package p10_test attacks the user's authority from inside each zone of a split session
// and from a plain session. It attacks the relay's API, page and sockets, policy, state,
// keys, the relay's process, the executor and the terminal. Meanwhile a question of another
// session waits. Only the user's own answer, from outside, may end that wait.
//
// Each attack has a control: the same steps from outside, which succeed. The test binary
// also plays the guest.
package p10_test
