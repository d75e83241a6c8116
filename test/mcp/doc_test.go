// Package mcp_test proves what plugins are held to: each in a session of its
// own with what its manifest says, hostile ones among them, and the official
// ones, alone and behind the gateway.
//
// The test binary is the servers too: started anew with a word of its own it is
// one of them, or does inside what the test told it and says what came of it.
package mcp_test
