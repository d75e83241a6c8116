// Package egress_test proves that a guest reaches what its human named, and
// nothing else, with the real programs in a small world of its own.
//
// The world is made of namespaces and leaves the machine alone. The test binary
// starts itself anew in it: once as its first process, which builds it; once
// outside, as the servers of an Internet in which addresses have the class that
// they have on the real one; and once on the machine, where the tests run, and
// bawn, and the control runs without bawn. What a test claims was kept from
// leaving, it looks for in the logs of the servers outside.
package egress_test
