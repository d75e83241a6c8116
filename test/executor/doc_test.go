// Package executor_test runs the executor where it belongs: as the first
// command of a sandbox of the native provider.
package executor_test
