// Package mcp_test tests that a plugin gets what its manifest says and no more. Each runs in
// a session of its own, alone and behind the gateway. Hostile plugins and official servers
// are among them.
//
// The test binary also plays the servers: a special first argument makes it one of them, or
// makes it carry out the test's steps inside and report the results.
package mcp_test
