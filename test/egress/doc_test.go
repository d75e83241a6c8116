// Package egress_test tests with the real programs that a guest reaches the hosts that its
// user named, and nothing else.
//
// The tests run in namespaces and do not change the machine. The test binary starts itself
// three times: as the first process, which makes the namespaces; as the servers of a small
// Internet, whose addresses have the same classes as real ones; and as the machine, on
// which the tests run bawn, and the controls without bawn. If a test claims that something
// did not leave the machine, it checks the logs of these servers.
package egress_test
