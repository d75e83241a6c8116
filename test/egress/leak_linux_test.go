package egress_test

import (
	"strings"
	"testing"
)

// TestRefusalsTellNothing: why a host can't be reached is for the human, as far
// as it says where the machine is, whom it asks for names, and at what private
// address a name is.
func TestRefusalsTellNothing(t *testing.T) {
	d := newAccount(t)
	const missing, private = "missing.test", "private.test"
	flags := append(allow(missing, private), "--http", "docs.test GET /**", "--http", "absent.test GET /**")
	var lines []string
	for _, url := range []string{"http://missing.test/", "http://private.test/", "http://docs.test/", "https://docs.test/", "https://absent.test/"} {
		lines = append(lines, "curl -sS -m 30 "+url)
	}
	r := d.inside(t, flags, strings.Join(lines, "; "))
	if n := strings.Count(r.out, "bawn refused") + strings.Count(r.out, "bawn could not forward"); n != len(lines) {
		t.Errorf("%d refusals, want %d: %s%s", n, len(lines), r.out, r.err)
	}
	for _, secret := range []string{resolverV4, machineV4, machinePrivateV4, hosts[private], hosts["docs.test"]} {
		if strings.Contains(r.out, secret) {
			t.Errorf("the guest learns %s: %s", secret, r.out)
		}
	}
	if log := d.run(t, d.bawn(t), "audit", "query"); !strings.Contains(log.out, resolverV4) || !strings.Contains(log.out, hosts[private]) {
		t.Errorf("the human learns nothing either: %s%s", log.out, log.err)
	}
}
