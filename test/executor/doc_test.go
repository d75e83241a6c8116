// Package executor_test runs the executor as sessions do: as the first command in a sandbox
// of the native provider.
package executor_test
