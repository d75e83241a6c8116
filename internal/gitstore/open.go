package gitstore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// openState reads what git has open: a rebase, a merge, a cherry-pick, a bisect.
func (u *unit) openState(root *os.Root) (map[string]content, error) {
	state := &unitState{Rel: u.Rel, State: map[string]content{}}
	return state.State, state.readState(root)
}

// digestOf is the digest of git's open operation, or "".
func digestOf(state map[string]content) string {
	if len(state) == 0 {
		return ""
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(state)) {
		fmt.Fprintf(h, "%q %q\n", name, state[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// mayFinish reports whether the host has that open still which the guest had too when
// the session started. A bisect stays the human's, and so does an operation with an
// autostash that nothing else leads to.
func (u *unit) mayFinish(open string) bool {
	if open == "" || u.Open == "" || strings.HasPrefix(open, "BISECT") {
		return false
	}
	state, err := u.openState(u.host)
	if err != nil || digestOf(state) != u.Open {
		return false
	}
	for name := range state {
		if strings.HasSuffix(name, "/autostash") || strings.HasPrefix(name, "BISECT") {
			return false
		}
	}
	return !exists(u.host, u.at("MERGE_AUTOSTASH"))
}

// close ends the host's open operation, once the host has the guest's result of it.
// The lock of the index is held.
func (c *changes) close() error {
	u := c.unit
	head, err := readHead(u.host, u.Rel, u.Size)
	if err != nil || head != c.private.head || c.host.value(head) != c.private.value(head) || !u.mayFinish(c.opened()) {
		return err
	}
	if c.index != nil && !c.index.merged.same(c.index.private) {
		return nil // both have staged the same path
	}
	state, err := u.openState(u.host)
	if err != nil {
		return err
	}
	for name := range state {
		if err := u.host.Remove(u.at(name)); err != nil && !missing(err) {
			return err
		}
	}
	for _, dir := range openDirs {
		if err := u.host.RemoveAll(u.at(dir)); err != nil {
			return err
		}
	}
	u.Open = ""
	c.store.report.Published++
	return nil
}

// opened is the host's open operation now, or "".
func (c *changes) opened() string {
	sd, err := look(c.unit.host, c.unit.Rel, c.unit.Size)
	if err != nil {
		return ""
	}
	return sd.open
}
