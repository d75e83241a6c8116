// Package split_test proves that the two zones of a split session are apart:
// from inside each it tries what only the other may, with the real programs,
// and runs the same commands unsandboxed and split to compare what an agent sees.
//
// The test binary is the agent too: started anew with a word of its own it does
// what the test told it and says what came of it.
package split_test
