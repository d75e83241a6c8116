package egress

import (
	"fmt"
	"os"
)

// Release is the release that this program is of. The linker sets it.
var Release = "0.1.0"

// Protocol numbers the words of this package and their order. Increment it with
// every change of them. Otherwise programs of two releases that lie beside each
// other, as after an unfinished upgrade, would wait forever for a message. It is
// text because the linker can set only text.
var Protocol = "4"

// A Hello says who speaks. It comes before the Config and never changes.
type Hello struct {
	Protocol string `json:"protocol"`
	Release  string `json:"release"`
	Program  string `json:"program"` // path of the executable
}

// Self is the Hello of this program.
func Self() Hello {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return Hello{Protocol: Protocol, Release: Release, Program: path}
}

// Agree returns nil where bawn and its relay speak the same protocol, and else
// an error that names both. The zero Hello is that of a peer that has not sent
// one.
func Agree(bawn, relay Hello) error {
	if bawn.Protocol == relay.Protocol && bawn.Protocol != "" {
		return nil
	}
	return fmt.Errorf("%s and the relay beside it, %s, are of two releases and don't understand each other; "+
		"install all programs of one release into one directory", bawn, relay)
}

// String names the program and its release.
func (h Hello) String() string {
	if h.Program == "" {
		return "the bawn that started it (which does not say its release)"
	}
	if h.Protocol == "" {
		return fmt.Sprintf("%q (which does not say its release)", h.Program)
	}
	return fmt.Sprintf("%q (%s, protocol %s)", h.Program, h.Release, h.Protocol)
}
