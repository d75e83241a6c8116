package agent

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

const sessionBind = "session-bind@openssh.com"

// A binding is a server's signed statement that the session with this id is one
// with it.
type binding struct {
	host             Host
	hostKey, session []byte
}

// bind takes the body of a session-bind request: host key, session id,
// signature, and whether the agent is being forwarded. One connection is bound
// once: ssh opens another for every session.
func (c *conn) bind(body wire) error {
	contents := body.rest
	blob, session, signed, forwarding := body.text(), body.text(), body.text(), body.flag()
	if !body.finished() || len(session) == 0 || len(session) > 64 {
		return errMessage
	}
	if c.spoilt {
		return errors.New("session-bind after one that was refused")
	}
	if forwarding {
		return errors.New("forwarding the ssh-agent to a server is not permitted")
	}
	if c.bound != nil {
		if bytes.Equal(c.bound.hostKey, blob) && bytes.Equal(c.bound.session, session) {
			return nil
		}
		return errors.New("the connection to the ssh-agent is bound to a session already")
	}
	key, err := verify(blob, session, signed)
	if err != nil {
		return err
	}
	host, err := c.permitted(key)
	if err != nil {
		return err
	}
	if err := c.tell(contents); err != nil {
		return err
	}
	c.bound = &binding{host: host, hostKey: bytes.Clone(blob), session: bytes.Clone(session)}
	return nil
}

// verify checks the server's signature of the session id. SHA-1 does not count.
func verify(blob, session, signed []byte) (ssh.PublicKey, error) {
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return nil, fmt.Errorf("session-bind: host key: %w", err)
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(signed, &signature); err != nil {
		return nil, fmt.Errorf("session-bind: signature: %w", err)
	}
	if signature.Format == ssh.KeyAlgoRSA || signature.Format == ssh.KeyAlgoDSA { //nolint:staticcheck // named in order to refuse it
		return nil, errors.New("session-bind: the server has signed with SHA-1")
	}
	if err := key.Verify(session, &signature); err != nil {
		return nil, errors.New("session-bind: the signature is not the server's")
	}
	return key, nil
}

// permitted finds the permitted host that has this key.
func (c *conn) permitted(key ssh.PublicKey) (Host, error) {
	for _, h := range c.Hosts() {
		if c.Known.Check(h.Name, h.Port, key) == nil {
			return h, nil
		}
	}
	return Host{}, fmt.Errorf("known_hosts does not have the host key %s for a permitted host", ssh.FingerprintSHA256(key))
}

// tell hands the binding on: the user's agent may have keys that it limits to
// some hosts itself (ssh-add -h). Agents that don't know the extension don't.
func (c *conn) tell(contents []byte) error {
	_, err := c.up.Extension(sessionBind, contents)
	if err != nil && !errors.Is(err, agent.ErrExtensionUnsupported) {
		return fmt.Errorf("the user's ssh-agent refuses the session: %w", err)
	}
	return nil
}
