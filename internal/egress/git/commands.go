package git

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// commands is the head of a push: everything before the pack.
type commands struct {
	updates []Update
	caps    []string
	shallow []string // commits whose parents the server is told to forget
	options []string
	idLen   int // digits of an id
}

// readCommands reads "shallow" lines, commands or a push certificate, and
// push options (gitprotocol-pack(5), "Reference Update Request"). It refuses
// what git's receive-pack would tolerate but no git client sends: capabilities
// on a later line, unsigned commands beside a certificate, a ref named twice.
func readCommands(p *pktReader, maxUpdates int) (*commands, error) {
	c := &commands{}
	certified := false
	for {
		line, flush, err := p.next()
		if err != nil {
			return nil, err
		}
		if flush {
			break
		}
		if certified || len(c.updates) >= maxUpdates {
			return nil, fmt.Errorf("the push has more commands than are read: at most %d, none beside a certificate", maxUpdates)
		}
		if certified, err = c.line(p, line, maxUpdates); err != nil {
			return nil, err
		}
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, c.readOptions(p)
}

// line reads one line, or the certificate that it begins.
func (c *commands) line(p *pktReader, line []byte, maxUpdates int) (certified bool, err error) {
	text, caps, hasCaps := bytes.Cut(line, []byte{0})
	if hasCaps && (c.caps != nil || len(c.updates) > 0) || bytes.IndexByte(caps, 0) >= 0 {
		return false, fmt.Errorf("command %.200q has capabilities; want them on the first command only", line)
	}
	if hasCaps {
		c.caps = append([]string{""}, strings.Fields(string(caps))...)
	}
	s := chomp(string(text))
	if id, ok := strings.CutPrefix(s, "shallow "); ok && !hasCaps {
		return false, c.addShallow(id)
	}
	if s == "push-cert" && hasCaps {
		return true, c.certificate(p, maxUpdates)
	}
	u, err := parseCommand(s)
	if err == nil {
		c.updates = append(c.updates, u)
	}
	return false, err
}

func chomp(s string) string { return strings.TrimSuffix(s, "\n") }

func (c *commands) addShallow(id string) error {
	if len(c.updates) > 0 || !validID(id) {
		return fmt.Errorf(`"shallow %.80s"; want an id, and the line before all commands`, id)
	}
	c.shallow = append(c.shallow, id)
	return nil
}

// parseCommand reads "old new ref".
func parseCommand(s string) (Update, error) {
	old, rest, _ := strings.Cut(s, " ")
	id, ref, ok := strings.Cut(rest, " ")
	if !ok || !validID(old) || !validID(id) {
		return Update{}, fmt.Errorf("command %.200q; want an old id, a new id and a ref", s)
	}
	if zeroID(old) && zeroID(id) {
		return Update{}, fmt.Errorf("command %.200q does nothing; want an old or a new id", s)
	}
	return Update{Old: old, New: id, Ref: ref}, CheckRef(ref)
}

// validID reports whether s is an id as git writes it: SHA-1 or SHA-256.
func validID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// The end of a certificate's commands is the first line that opens a signature;
// git takes the last one and then fails on the lines between.
const (
	signature = "-----BEGIN "
	certEnd   = "push-cert-end\n"
)

// certificate reads the lines of a signed push up to its end. The signature is
// the server's to check: the commands count in any case.
func (c *commands) certificate(p *pktReader, maxUpdates int) error {
	const head, body, tail = 0, 1, 2
	part := head
	for {
		b, flush, err := p.next()
		line := string(b)
		switch {
		case err != nil:
			return err
		case flush || strings.IndexByte(line, '\n') != len(line)-1 || strings.IndexByte(line, 0) >= 0:
			return fmt.Errorf("push certificate: %.200q; want one line a packet up to %q", line, certEnd)
		case line == certEnd && part == tail:
			return nil
		case line == certEnd:
			return fmt.Errorf("push certificate: it ends without a signature")
		case part == head && line == "\n":
			part = body
		case part == body && strings.HasPrefix(line, signature):
			part = tail
		case part == body && len(c.updates) >= maxUpdates:
			return fmt.Errorf("push certificate: more than %d commands", maxUpdates)
		case part == body:
			u, err := parseCommand(chomp(line))
			if err != nil {
				return err
			}
			c.updates = append(c.updates, u)
		}
	}
}

// check compares the commands with each other: one format of ids, no ref twice.
func (c *commands) check() error {
	c.idLen = 40
	for _, capability := range c.caps {
		format, ok := strings.CutPrefix(capability, "object-format=")
		switch {
		case !ok || format == "sha1":
		case format == "sha256":
			c.idLen = 64
		default:
			return fmt.Errorf("object format %.40q; want sha1 or sha256", format)
		}
	}
	seen := map[string]bool{}
	for _, u := range c.updates {
		if len(u.Old) != c.idLen || len(u.New) != c.idLen {
			return fmt.Errorf("ref %q: its ids are not of the object format that was agreed on", u.Ref)
		}
		if seen[u.Ref] {
			return fmt.Errorf("ref %q is named twice; want one command a ref", u.Ref)
		}
		seen[u.Ref] = true
	}
	if slices.ContainsFunc(c.shallow, func(id string) bool { return len(id) != c.idLen }) {
		return fmt.Errorf("a shallow commit's id is not of the object format that was agreed on")
	}
	return nil
}

// readOptions reads the push options, which come between the commands and the
// pack where the client has asked for them.
func (c *commands) readOptions(p *pktReader) error {
	if len(c.updates) == 0 || !slices.Contains(c.caps, "push-options") {
		return nil
	}
	for {
		line, flush, err := p.next()
		if err != nil || flush {
			return err
		}
		c.options = append(c.options, chomp(string(line)))
	}
}

// sendsPack reports whether a pack follows the commands.
func (c *commands) sendsPack() bool {
	return slices.ContainsFunc(c.updates, func(u Update) bool { return !u.Delete() })
}

func (c *commands) shallowSet() map[string]bool {
	set := make(map[string]bool, len(c.shallow))
	for _, id := range c.shallow {
		set[id] = true
	}
	return set
}
