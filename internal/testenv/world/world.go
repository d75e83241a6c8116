// Package world makes an Internet of namespaces: the process that wants one is
// started again on a machine, whose only wire leads to an outside of the caller's
// own. A program that makes a world calls [Enter] first and does what [Role]
// says in the processes that are started then.
package world

import "os"

// The environment of a world's processes: which one it is, and the directory of
// the world.
const (
	roleVariable = "BAWN_WORLD_ROLE"
	dirVariable  = "BAWN_WORLD_DIR"
)

// The processes of a world.
const (
	First   = "first"   // builds it
	Outside = "outside" // serves what is outside, in a network of its own
	Machine = "machine" // where a user sits
)

// Role names what this process does in a world; it is "" in a process outside of one.
func Role() string { return os.Getenv(roleVariable) }

// Dir is the directory of the world that this process is in.
func Dir() string { return os.Getenv(dirVariable) }
