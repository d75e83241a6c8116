// Package examples tests the examples: each does what its README says.
package examples
