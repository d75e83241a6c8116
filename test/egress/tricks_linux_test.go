package egress_test

import (
	"fmt"
	"strings"
	"testing"
)

// python sends abc over a socket that is made in an unusual way, and prints
// what comes back.
func python(make, connect string) string {
	return fmt.Sprintf("python3 -c 'import socket; s = %s; s.settimeout(10); %s; s.sendall(b\"abc\"); print(s.recv(9))'", make, connect)
}

// TestSocketTricks attacks with what else carries bytes than a plain connect.
func TestSocketTricks(t *testing.T) {
	d := newAccount(t, "python3")
	const plain, connect, echoed = "socket.socket()", `s.connect(("93.184.215.15", 7777))`, "abc"
	attacks(t, d, map[string]attack{
		"plain":         {line: python(plain, connect), want: echoed},
		"MPTCP":         {line: python("socket.socket(2, 1, 262)", connect), want: echoed},
		"data in a SYN": {line: python(plain, "s.setsockopt(6, 30, 1); "+connect), want: echoed},
		"foreign local address": {
			line: python(plain, `s.setsockopt(0, 15, 1); s.bind(("0.0.0.0", 0)); `+connect), want: echoed,
		},
	})
}

// TestOwnPorts attacks the relay at its ports inside: what is said there
// directly leads nowhere, and nobody inside can take them.
func TestOwnPorts(t *testing.T) {
	d := newAccount(t, "python3")
	m := d.now(t)
	const to = `for a, p in (("127.0.0.1", 61001), ("::1", 61001), ("::ffff:127.0.0.1", 61001), ("127.0.0.1", 61053), ("127.0.0.1", 61128)):
    try:
        s = socket.create_connection((a, p), 3)
        s.settimeout(10)
        s.sendall(b"GET / HTTP/1.0\r\nHost: allowed.test\r\n\r\n")
        print("said", s.recv(3000))
    except OSError as e: print("said", e) # at once, perhaps
for a in ("", "0.0.0.0", "127.0.0.1"):
    for p in (61001, 61053, 61128):
        s = socket.socket()
        s.setsockopt(1, 2, 1)
        s.setsockopt(1, 15, 1)
        try: s.bind((a, p)); s.listen(); print("TAKEN", a, p)
        except OSError: print("not taken")`
	r := d.inside(t, allow("allowed.test"), "python3 -c 'import socket\n"+to+"'")
	if strings.Count(r.out, "said") != 5 || strings.Count(r.out, "not taken") != 9 || strings.Contains(r.out, "this is allowed") {
		t.Errorf("%s%s", r.out, r.err)
	}
	if seen := d.since(t, m); len(seen) > 0 {
		t.Errorf("outside: %+v", seen)
	}
}
