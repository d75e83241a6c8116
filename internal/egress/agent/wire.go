package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errMessage = errors.New("a message to the ssh-agent that can't be read")

// A wire takes apart a message in SSH's encoding (RFC 4251, section 5). Missing
// data read as zero or nothing, and finished reports them.
type wire struct {
	rest []byte
	torn bool
}

func (w *wire) take(n int) []byte {
	if len(w.rest) < n || w.torn {
		w.torn = true
		return nil
	}
	out := w.rest[:n:n]
	w.rest = w.rest[n:]
	return out
}

func (w *wire) number() uint32 {
	if b := w.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (w *wire) text() []byte {
	return w.take(int(min(w.number(), maxMessage+1)))
}

// flag reads a boolean, which PROTOCOL.agent encodes as one byte.
func (w *wire) flag() bool {
	b := w.take(1)
	return b == nil || b[0] != 0
}

// finished reports whether all has been read, and nothing was missing.
func (w *wire) finished() bool { return len(w.rest) == 0 && !w.torn }

func appendString(to, s []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(s))), s...)
}

// A login is the data that a client signs in order to log in (RFC 4252, section
// 7).
type login struct {
	session, key []byte
	user         string
	hostKey      []byte // of the hostbound method only (OpenSSH PROTOCOL, section 1.11)
}

const (
	userauthRequest = 50
	hostbound       = "publickey-hostbound-v00@openssh.com"
	sshsig          = "SSHSIG" // PROTOCOL.sshsig
)

func parseLogin(data []byte) (login, error) {
	w := wire{rest: data}
	l := login{session: w.text()}
	kind := w.take(1)
	l.user = string(w.text())
	service, method := string(w.text()), string(w.text())
	signs := w.flag()
	w.text() // the algorithm
	l.key = w.text()
	if method == hostbound {
		l.hostKey = w.text()
	}
	switch {
	case !w.finished() || len(l.session) == 0 || len(kind) != 1 || kind[0] != userauthRequest || !signs:
		return login{}, errors.New("the data to be signed is no login to an SSH server")
	case service != "ssh-connection" || method != "publickey" && method != hostbound:
		return login{}, fmt.Errorf("a login to service %.40q by method %.40q; want ssh-connection and publickey", service, method)
	case method == hostbound && len(l.hostKey) == 0:
		return login{}, errors.New("a hostbound login without a host key")
	}
	return l, nil
}

// parseText reads the namespace of a text's signature (PROTOCOL.sshsig,
// section 3).
func parseText(data []byte) (namespace string, err error) {
	w := wire{rest: data[len(sshsig):]}
	name, reserved, hash, sum := w.text(), w.text(), w.text(), w.text()
	wanted := map[string]int{"sha256": 32, "sha512": 64}[string(hash)]
	if !w.finished() || len(name) == 0 || len(reserved) != 0 || wanted == 0 || len(sum) != wanted {
		return "", errors.New("the data to be signed is no text's signature as ssh-keygen makes it")
	}
	return string(name), nil
}
