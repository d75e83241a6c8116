// Package split_test tests with the real programs that the two zones of a split session are
// apart. From inside each zone it tries what only the other may do. It also runs the same
// commands unsandboxed and split, and compares what an agent sees.
//
// The test binary also plays the agent: a special first argument makes it carry out the
// test's steps and report the results.
package split_test
