// Package containers tests the Docker API that a session gives its guest, with
// the real programs and a real engine.
package containers
