package ssh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// A KeySource returns the keys to offer to a server, in order, and a function
// that frees them.
type KeySource func(context.Context) (keys []ssh.Signer, done func(), err error)

// AgentKeys are the keys of the ssh-agent that listens at path (the user's
// SSH_AUTH_SOCK). Servers give up after some six keys, so an agent with more
// needs [FileKeys] instead, or fewer keys.
func AgentKeys(path string) KeySource {
	return func(ctx context.Context) ([]ssh.Signer, func(), error) {
		if path == "" {
			return nil, nil, errors.New("there is no ssh-agent; start one and add a key (ssh-add), or name key files")
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err != nil {
			return nil, nil, fmt.Errorf("reach the ssh-agent: %w", err)
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		keys, err := agent.NewClient(conn).Signers()
		if err == nil && len(keys) == 0 {
			err = errors.New("the ssh-agent has no key; add one (ssh-add)")
		}
		if err != nil {
			stop()
			return nil, nil, errors.Join(err, conn.Close())
		}
		return keys, func() { stop(); conn.Close() }, nil
	}
}

// FileKeys are private keys in files, without passphrases.
func FileKeys(paths ...string) KeySource {
	return func(context.Context) ([]ssh.Signer, func(), error) {
		var keys []ssh.Signer
		for _, p := range paths {
			text, err := os.ReadFile(p)
			if err != nil {
				return nil, nil, err
			}
			key, err := ssh.ParsePrivateKey(text)
			clear(text)
			var locked *ssh.PassphraseMissingError
			if errors.As(err, &locked) {
				return nil, nil, fmt.Errorf("key %q has a passphrase; add it to your ssh-agent (ssh-add) instead", p)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("key %q: %w", p, err)
			}
			keys = append(keys, key)
		}
		return keys, func() {}, nil
	}
}

// watched makes every signature of keys an event first.
func (t target) watched(keys []ssh.Signer) []ssh.Signer {
	out := make([]ssh.Signer, len(keys))
	for i, k := range keys {
		out[i] = watchedKey{k, t}
	}
	return out
}

type watchedKey struct {
	ssh.Signer
	target
}

var _ ssh.AlgorithmSigner = watchedKey{}

// Sign signs with the key's first algorithm.
func (k watchedKey) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	return k.SignWithAlgorithm(random, data, "")
}

// SignWithAlgorithm records the use, then signs.
func (k watchedKey) SignWithAlgorithm(_ io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	use := Use{Host: k.host, Port: k.port, User: k.user, Fingerprint: ssh.FingerprintSHA256(k.PublicKey())}
	if err := k.Used(use); err != nil {
		return nil, fmt.Errorf("the use of key %s could not be recorded: %w", use.Fingerprint, err)
	}
	if signer, ok := k.Signer.(ssh.AlgorithmSigner); ok && algorithm != "" {
		return signer.SignWithAlgorithm(rand.Reader, data, algorithm)
	}
	return k.Signer.Sign(rand.Reader, data)
}
