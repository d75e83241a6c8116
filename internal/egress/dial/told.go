package dial

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Told is the part of an error that a guest may see: err's text without the
// addresses of this machine, its name servers and its proxy, and without
// private addresses. Those are for the log and the human.
func Told(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	var closed *RefusedError
	if errors.As(err, &closed) {
		text = strings.ReplaceAll(text, closed.Error(), closed.told())
	}
	var through *ProxyError
	if errors.As(err, &through) {
		text = strings.ReplaceAll(text, through.Error(), "the network's proxy: "+Told(through.Err))
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) {
		text = strings.ReplaceAll(text, lookup.Error(), lookupTold(lookup))
	}
	var op *net.OpError
	if errors.As(err, &op) {
		text = strings.ReplaceAll(text, op.Error(), op.Op+": "+Told(op.Err))
	}
	return text
}

func (e *RefusedError) told() string {
	if e.Addr.String() == e.Host { // the guest has named it
		return e.Error()
	}
	return fmt.Sprintf("%q is not at a public address (%s); want a host that is, or a rule that names its address", e.Host, e.Class)
}

func lookupTold(e *net.DNSError) string {
	switch {
	case e.IsNotFound:
		return "no such host"
	case e.IsTimeout:
		return "no name server answers in time"
	}
	return "no name server answers"
}
