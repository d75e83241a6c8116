package egress_test

import "testing"

// heads opens 300 connections and says on each nearly a MiB of a request's head,
// whose end never comes.
const heads = `python3 -c '
import socket
to, all = (socket.gethostbyname("allowed.test"), 80), []
for i in range(300):
    s = socket.create_connection(to, 9)
    s.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    s.recv(4096)
    all.append(s)
for s in all:
    try: s.sendall(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n" + b"X: %s\r\n" % (b"a" * 4000) * 250)
    except OSError: pass
print("flooded")
input()
'`

// TestFloodOfHeads: what a guest can make the relay hold has a bound that does
// not come from the guest.
func TestFloodOfHeads(t *testing.T) {
	d := newAccount(t, "python3")
	s := d.openTerminal(t, allow("allowed.test"), heads+"; curl -sS -m 30 http://allowed.test/after")
	s.within(patience, "flooded")
	if kib := memory(t, relay(t).pid); kib > 110<<10 {
		t.Errorf("the relay took %d KiB", kib)
	} else {
		t.Logf("the relay took %d KiB", kib)
	}
	s.say("")
	s.see("GET /after")
	s.end()
}
