package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/ipc"
)

// A Spec says everything about a session to start, except the machine's
// configuration and its policy. Bawn's command line makes one; a process that
// starts a session in another one hands it over (Send, Receive).
type Spec struct {
	config.Flags        // the request beside the configuration
	Argv         Words  // the command and its arguments; empty with Gateway
	Dir          string // where it starts, absolute; "" is the working directory of who starts it
	As           string // definition file, absolute, or ""
	// Given names the flags that somebody gave: only for those a missing part is
	// reported.
	Given []string

	PinGit bool // git runs no program that a repository names
	// Covered does not start without a checkpoint: the judgement of the command relied on
	// one.
	Covered bool
	// Name is that of the session's copy, and From the copy with which it begins, or "".
	Name, From string
	// For is the session of an unsandboxed agent whose hook has moved the command here, or "".
	For   string
	JSON  bool // how it ended is printed as one line of JSON
	Quiet bool // nothing is printed that isn't an error

	// Hosted is a session in the background: its process inherits the end of its
	// first viewer and its terminal.
	Hosted bool
	// Plugin is a plugin's own session, which no hook plugin is asked about.
	Plugin bool
	// Asks is a socket of Bawn's at which its questions are put, or "".
	Asks string
	// Parent is the session whose guest starts this one, or nil.
	Parent *Parent
	// Gateway is there where the guest wants tool servers and no command.
	Gateway *Gateway
}

// A Gateway serves plugins to the guest of Spec.Parent.
type Gateway struct {
	Servers []string // names of plugins; none for all
}

// Has reports whether a flag was given.
func (s *Spec) Has(flag string) bool { return slices.Contains(s.Given, flag) }

// Words are strings of any bytes but NUL, as the kernel takes them for arguments
// and environments (execve(2)). JSON has them in base64.
type Words []string

// MarshalJSON is of json.Marshaler.
func (w Words) MarshalJSON() ([]byte, error) {
	list := make([][]byte, len(w))
	for i, word := range w {
		list[i] = []byte(word)
	}
	return json.Marshal(list)
}

// UnmarshalJSON is of json.Unmarshaler.
func (w *Words) UnmarshalJSON(text []byte) error {
	var list [][]byte
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*w = make(Words, len(list))
	for i, word := range list {
		(*w)[i] = string(word)
	}
	return nil
}

// MaxSpec bounds a Spec as it is sent, in bytes: the arguments and the environment
// of a program are 2 MiB at most on Linux by default (execve(2)).
const MaxSpec = 8 << 20

// Encode writes the spec down for Receive. A path that is not UTF-8 would be
// another one to its reader: that is an error.
func (s *Spec) Encode() ([]byte, error) {
	text, err := ipc.Append(nil, s, MaxSpec)
	if err == nil && bytes.Contains(text, []byte(`\ufffd`)) { // what encoding/json writes for bytes that are not UTF-8
		err = errors.New("a path or name of the session is not UTF-8 and can't be handed on")
	}
	return text, err
}

// Receive reads what Encode wrote, and nothing after it.
func Receive(r io.Reader) (*Spec, error) {
	s := &Spec{}
	if err := ipc.Read(r, s, MaxSpec); err != nil {
		return nil, err
	}
	return s, s.check()
}

// check refuses what no part of Bawn sends.
func (s *Spec) check() error {
	switch {
	case s.Gateway == nil && (len(s.Argv) == 0 || s.Argv[0] == ""):
		return errors.New("it has no command")
	case s.Gateway != nil && (s.Parent == nil || len(s.Argv) > 0):
		return errors.New("tool servers are for a guest, and are no command")
	case s.Parent != nil && (s.Parent.Session.ID == "" || s.Parent.Depth < 1):
		return errors.New("the session above has no ID or no depth")
	case s.Hosted && (s.Parent != nil || s.Plugin || s.Asks != ""):
		return errors.New("only a person's session runs in the background")
	}
	return nil
}
