// Package maker writes and reads labels in a Docker engine. They name the process
// that removes a session's objects, so that a later process finds what a killed
// one has left.
package maker

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Labels of everything that a maker makes.
const (
	LabelSession = "dev.bawn.session" // the session's ID
	LabelMaker   = "dev.bawn.maker"   // "PID:START" of the process that removes it at its end; START in ticks since boot
	LabelSpace   = "dev.bawn.space"   // the PID namespace in which the process has this PID
	LabelRole    = "dev.bawn.role"    // what it is for
)

// A Maker is a process that removes what it has made.
type Maker struct {
	PID   int
	Start uint64 // ticks since boot: field 22 of proc_pid_stat(5)
	Space string // its PID namespace and machine: elsewhere the PID is another process's
}

// Labels adds those of m to a container's own.
func (m Maker) Labels(own map[string]string, session, role string) map[string]string {
	out := maps.Clone(own)
	if out == nil {
		out = map[string]string{}
	}
	out[LabelSession], out[LabelMaker], out[LabelSpace], out[LabelRole] = session, m.String(), m.Space, role
	return out
}

// String is the form of LabelMaker.
func (m Maker) String() string { return fmt.Sprintf("%d:%d", m.PID, m.Start) }

// Parse reads that form. The result has no Space.
func Parse(text string) (Maker, error) {
	pid, start, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(pid)
	t, err2 := strconv.ParseUint(start, 10, 64)
	if err := errors.Join(err, err2); err != nil || n <= 0 {
		return Maker{}, fmt.Errorf("%q is not a process with its start; want PID:TICKS", text)
	}
	return Maker{PID: n, Start: t}, nil
}
