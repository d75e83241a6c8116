package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Messages of the agent protocol (RFC draft-ietf-sshm-ssh-agent, section 5).
const (
	failure           = 5
	success           = 6
	requestIdentities = 11
	identitiesAnswer  = 12
	signRequest       = 13
	signResponse      = 14
	extension         = 27
	extensionFailure  = 28
)

// maxMessage is what OpenSSH's agent takes (AGENT_MAX_LEN).
const maxMessage = 256 << 10

// A conn is one connection of a guest, with the sessions to which it was bound.
type conn struct {
	*Agent
	up    agent.ExtendedAgent
	bound *binding

	// spoilt says that a session-bind was refused. ssh goes on all the same,
	// and what then comes may be from the far end of a forwarding.
	spoilt bool
}

// serve answers one connection until either side ends it.
func (a *Agent) serve(ctx context.Context, guest net.Conn) {
	defer guest.Close()
	up, err := a.Upstream(ctx)
	if err != nil {
		a.refused(fmt.Errorf("reach the user's ssh-agent: %w", err))
		return
	}
	defer up.Close()
	defer context.AfterFunc(ctx, func() { guest.Close(); up.Close() })()
	c := &conn{Agent: a, up: agent.NewClient(up)}
	for {
		message, err := readMessage(guest)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return
		}
		if err != nil {
			a.refused(err)
			return
		}
		if writeMessage(guest, c.answer(message)) != nil {
			return
		}
	}
}

func readMessage(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxMessage {
		return nil, fmt.Errorf("a message to the ssh-agent has %d bytes; want 1 to %d", n, maxMessage)
	}
	message := make([]byte, n)
	_, err := io.ReadFull(r, message)
	return message, err
}

func writeMessage(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	return err
}

// answer returns the answer to one message. Adding, removing and locking keys
// and whatever else there may be is refused.
func (c *conn) answer(message []byte) []byte {
	kind, body := message[0], wire{rest: message[1:]}
	reply, err := []byte{failure}, error(nil)
	switch kind {
	case requestIdentities:
		reply, err = c.list(body)
	case signRequest:
		reply, err = c.sign(body)
	case extension:
		return c.extension(body)
	default:
		err = fmt.Errorf("message %d to the ssh-agent; only listing and signing are permitted", kind)
	}
	if err != nil {
		c.refused(err)
		return []byte{failure}
	}
	return reply
}

// list answers with the permitted keys.
func (c *conn) list(body wire) ([]byte, error) {
	if !body.finished() {
		return nil, errMessage
	}
	keys, err := c.up.List()
	if err != nil {
		return nil, fmt.Errorf("list the keys of the user's ssh-agent: %w", err)
	}
	keys = slices.DeleteFunc(keys, func(k *agent.Key) bool {
		key, err := ssh.ParsePublicKey(k.Blob)
		return err != nil || !c.Keys(key)
	})
	out := binary.BigEndian.AppendUint32([]byte{identitiesAnswer}, uint32(len(keys)))
	for _, k := range keys {
		out = appendString(appendString(out, k.Blob), []byte(k.Comment))
	}
	return out, nil
}

// sign has the user's agent sign a login that is permitted.
func (c *conn) sign(body wire) ([]byte, error) {
	blob, data, flags := body.text(), body.text(), body.number()
	if !body.finished() || flags&^uint32(agent.SignatureFlagRsaSha256|agent.SignatureFlagRsaSha512) != 0 {
		return nil, errMessage
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil || !c.Keys(key) {
		return nil, errors.New("the guest may not use the key that it has named")
	}
	use, err := c.judge(key, data)
	if err != nil {
		return nil, err
	}
	if err := c.Record(use); err != nil {
		return nil, fmt.Errorf("key %s is not used: %w", use.Fingerprint, err)
	}
	signature, err := c.up.SignWithFlags(key, data, agent.SignatureFlags(flags))
	if err != nil {
		return nil, fmt.Errorf("the user's ssh-agent: %w", err)
	}
	return appendString([]byte{signResponse}, ssh.Marshal(signature)), nil
}

// judge says for what a signature of data would be used, or why it may not be
// made.
func (c *conn) judge(key ssh.PublicKey, data []byte) (Use, error) {
	use := Use{Fingerprint: ssh.FingerprintSHA256(key)}
	if bytes.HasPrefix(data, []byte(sshsig)) {
		text, err := parseText(data)
		if err != nil {
			return use, err
		}
		if use.Namespace = text; !slices.Contains(c.Namespaces, text) {
			return use, fmt.Errorf("signing texts in namespace %.40q is not permitted", text)
		}
		return use, nil
	}
	login, err := parseLogin(data)
	switch {
	case err != nil:
		return use, err
	case c.spoilt:
		return use, errors.New("a login on a connection whose session-bind was refused")
	case c.bound == nil:
		return use, errors.New("a login without session-bind; want OpenSSH 8.9 or later, which says where the connection leads")
	case !bytes.Equal(login.session, c.bound.session):
		return use, errors.New("a login in another session than the one that the server has signed")
	case !bytes.Equal(login.key, key.Marshal()):
		return use, errors.New("a login with another key than the one that is to sign")
	case login.hostKey != nil && !bytes.Equal(login.hostKey, c.bound.hostKey):
		return use, errors.New("a login bound to another host key than the server's")
	}
	use.Host, use.User = c.bound.host, login.user
	return use, nil
}

// extension takes session-bind and nothing else.
func (c *conn) extension(body wire) []byte {
	if name := body.text(); string(name) != sessionBind {
		c.refused(fmt.Errorf("extension %.40q of the ssh-agent is not permitted", name))
		return []byte{failure}
	}
	if err := c.bind(body); err != nil {
		c.spoilt = true
		c.refused(err)
		return []byte{extensionFailure}
	}
	return []byte{success}
}
