package webui

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestPairAndLogin: a code pairs a device, which is logged in, and later logs
// in with its passkey; all of it is recorded.
func TestPairAndLogin(t *testing.T) {
	r := newRig(t)
	b := r.browser(t)
	if status := b.looks(); status != http.StatusUnauthorized {
		t.Fatalf("without a login: %d; want 401", status)
	}
	long, _ := r.code(t, false)
	if status := b.pair(long); status != http.StatusOK {
		t.Fatalf("pairing: %d; want 200; %s", status, r.log)
	}
	if status, m := b.call("ApprovalService/List", words{}); status != http.StatusOK || m["name"] != "Anna's phone" || m["readOnly"] != false {
		t.Fatalf("the API answers %d %v; want the device", status, m)
	}
	if _, m := b.call("AuthService/Me", words{}); m["loggedIn"] != true || m["name"] != "Anna's phone" {
		t.Errorf("Me says %v", m)
	}
	if status, _ := b.call("AuthService/Logout", words{}); status != http.StatusOK {
		t.Errorf("logout: %d", status)
	}
	if status := b.looks(); status != http.StatusUnauthorized {
		t.Errorf("after the logout: %d; want 401", status)
	}
	if status := b.login(); status != http.StatusOK {
		t.Fatalf("login: %d; want 200", status)
	}
	if status := b.looks(); status != http.StatusOK {
		t.Errorf("after the login: %d; want 200", status)
	}
	for operation, reason := range map[string]string{opPair: "paired", opLogin: "passkey", opLogout: "logged out", opRefuse: "log in first"} {
		if !r.records.has(operation, reason) {
			t.Errorf("no event %s %q with the peer's address: %v", operation, reason, r.records.events)
		}
	}
}

// TestCookie: what a browser needs to keep the login to this page.
func TestCookie(t *testing.T) {
	r := newRig(t)
	long, _ := r.code(t, false)
	b := r.browser(t)
	_, m := b.call("AuthService/BeginPair", words{"code": long})
	answer, err := b.client.Do(b.request("AuthService/FinishPair", words{"ceremony": m["ceremony"], "name": "x", "credential": b.auth.create(t, m["options"].(string))}))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text := answer.Header.Get("Set-Cookie")
	for _, want := range []string{"__Host-bawn=", "; Path=/", "; HttpOnly", "; Secure", "; SameSite=Strict"} {
		if !strings.Contains(text, want) {
			t.Errorf("cookie %q has no %q", text, want)
		}
	}
	if strings.Contains(text, "Domain") {
		t.Errorf("cookie %q has a domain", text)
	}
	for kind, items := range r.items.kinds {
		for id, value := range items {
			for _, c := range answer.Cookies() {
				if strings.Contains(id+string(value), c.Value) {
					t.Errorf("the store's %s %q holds the cookie itself", kind, id)
				}
			}
		}
	}
}

// TestPairingCode attacks the codes. In each row the last pairing is tried with
// the code that attack returns; the control is TestPairAndLogin.
func TestPairingCode(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, r *rig) string{
		"used before": func(t *testing.T, r *rig) string {
			long, _ := r.code(t, false)
			if status := r.browser(t).pair(long); status != http.StatusOK {
				t.Fatalf("first use: %d", status)
			}
			return long
		},
		"used before, the short one after the long one": func(t *testing.T, r *rig) string {
			long, short := r.code(t, false)
			if status := r.browser(t).pair(long); status != http.StatusOK {
				t.Fatalf("first use: %d", status)
			}
			return short
		},
		"too old": func(t *testing.T, r *rig) string {
			long, _ := r.code(t, false)
			r.clock.forward(pairTime)
			return long
		},
		"replaced": func(t *testing.T, r *rig) string {
			long, _ := r.code(t, false)
			r.code(t, false)
			return long
		},
		"mistyped too often": func(t *testing.T, r *rig) string {
			_, short := r.code(t, false)
			for range shortTries {
				if status := r.browser(t).pair("0000-0000"); status != http.StatusForbidden {
					t.Errorf("a wrong code: %d; want 403", status)
				}
			}
			return short
		},
		"none was made":             func(*testing.T, *rig) string { return "" },
		"none was made, a long one": func(*testing.T, *rig) string { return strings.Repeat("A", longSize) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			code := attack(t, r)
			before := len(r.devices.all())
			if status := r.browser(t).pair(code); status != http.StatusForbidden {
				t.Errorf("status %d; want 403", status)
			}
			if after := len(r.devices.all()); after != before || !r.records.has(opRefuse, "pairing code") {
				t.Errorf("%d devices before, %d after; events %v", before, after, r.records.events)
			}
		})
	}
}

// TestShortCode: humans type it as they like, and four mistakes are forgiven;
// wrong long codes make nothing void.
func TestShortCode(t *testing.T) {
	r := newRig(t)
	_, short := r.code(t, true)
	for range shortTries - 1 {
		r.browser(t).pair("ZZZZ-ZZZZ")
	}
	for range 4 {
		r.browser(t).pair(strings.Repeat("B", longSize))
	}
	b := r.browser(t)
	if status := b.pair(" " + strings.ToLower(strings.ReplaceAll(short, "-", " "))); status != http.StatusOK {
		t.Fatalf("status %d; want 200", status)
	}
	if _, m := b.call("AuthService/Me", words{}); m["readOnly"] != true {
		t.Errorf("Me says %v; want a device that may only look", m)
	}
}

// TestMistypedByOthers: what others mistype makes only the short code void, which
// "mistyped too often" of TestPairingCode shows; the QR code stays good.
func TestMistypedByOthers(t *testing.T) {
	r := newRig(t)
	long, _ := r.code(t, false)
	for range shortTries + 1 {
		r.browser(t).pair("ZZZZ-ZZZZ")
	}
	if status := r.browser(t).pair(long); status != http.StatusOK {
		t.Errorf("status %d; want 200", status)
	}
}

// TestRitesAreShared: one network's ceremonies end its own, and nobody else's.
func TestRitesAreShared(t *testing.T) {
	now := time.Unix(1e9, 0)
	peer := func(text string) netip.Prefix { return network(netip.MustParseAddr(text)) }
	var r rites
	other, ok := r.begin(rite{peer: peer("192.0.2.2")}, now)
	if !ok {
		t.Fatal("the first is refused")
	}
	var mine []string
	for range 5000 {
		id, ok := r.begin(rite{peer: peer("192.0.2.1")}, now)
		if !ok {
			t.Fatal("refused for one's own ceremonies")
		}
		mine = append(mine, id)
	}
	last := len(mine) - 1
	if _, ok := r.take(mine[last-maxRitesOfPeer], now); ok {
		t.Error("more than a network's share is kept")
	}
	for _, id := range append(mine[last-maxRitesOfPeer+1:], other) {
		if _, ok := r.take(id, now); !ok {
			t.Error("one of the share, or of another network, is gone")
		}
	}
	for i := range maxRites + 5 { // the control: of many networks
		if _, ok := r.begin(rite{peer: peer(fmt.Sprintf("10.0.%d.%d", i/250, i%250))}, now); ok != (i < maxRites) {
			t.Fatalf("rite %d of all: %t", i, ok)
		}
	}
}

// TestOneCodeTwoCeremonies: who finishes first has the code.
func TestOneCodeTwoCeremonies(t *testing.T) {
	r := newRig(t)
	long, _ := r.code(t, false)
	first, second := r.browser(t), r.browser(t)
	var status [2]int
	var begun [2]map[string]any
	for i, b := range []*browser{first, second} {
		if status[i], begun[i] = b.call("AuthService/BeginPair", words{"code": long}); status[i] != http.StatusOK {
			t.Fatal(status[i])
		}
	}
	for i, b := range []*browser{first, second} {
		status[i], _ = b.call("AuthService/FinishPair", words{"ceremony": begun[i]["ceremony"], "name": "x", "credential": b.auth.create(t, begun[i]["options"].(string))})
	}
	if status != [2]int{http.StatusOK, http.StatusForbidden} || len(r.devices.all()) != 1 {
		t.Errorf("statuses %v, %d devices; want 200 and 403, one device", status, len(r.devices.all()))
	}
}

// TestWrongPasskey attacks the login of a paired device: the same login without
// the change succeeds.
func TestWrongPasskey(t *testing.T) {
	for name, attack := range map[string]func(*authenticator){
		"for another origin":    func(a *authenticator) { a.origin = "https://localhost:1" },
		"for another site":      func(a *authenticator) { a.rpID = "example.org" },
		"user not verified":     func(a *authenticator) { a.flags = 0x01 },
		"user not there":        func(a *authenticator) { a.flags = 0x04 },
		"another key":           func(a *authenticator) { a.key = newAuthenticator("").key },
		"another credential":    func(a *authenticator) { a.id = newAuthenticator("").id },
		"another user's handle": func(a *authenticator) { a.handle = []byte("0123456789abcdef") },
		"a copy of it":          func(a *authenticator) { a.counter = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			b := r.paired(t, false)
			if status := b.login(); status != http.StatusOK {
				t.Fatalf("control: %d; want 200", status)
			}
			attack(b.auth)
			if status := b.login(); status != http.StatusForbidden || !r.records.has(opRefuse, "") {
				t.Errorf("status %d; want 403 and an event", status)
			}
		})
	}
}

// TestReplayedAssertion: a ceremony is good once, for what it was begun for,
// and for five minutes.
func TestReplayedAssertion(t *testing.T) {
	r := newRig(t)
	b := r.browser(t)
	b.auth.frozen = true // so that the counter tells nothing
	long, _ := r.code(t, false)
	if status := b.pair(long); status != http.StatusOK {
		t.Fatal(status)
	}
	_, m := b.call("AuthService/BeginLogin", words{})
	message := words{"ceremony": m["ceremony"], "credential": b.auth.get(t, m["options"].(string))}
	if status, _ := b.call("AuthService/FinishLogin", message); status != http.StatusOK {
		t.Fatalf("control: %d", status)
	}
	if status, _ := b.call("AuthService/FinishLogin", message); status != http.StatusForbidden {
		t.Errorf("replayed: %d; want 403", status)
	}
	_, other := b.call("AuthService/BeginLogin", words{})
	message["ceremony"] = other["ceremony"]
	if status, _ := b.call("AuthService/FinishLogin", message); status != http.StatusForbidden {
		t.Errorf("replayed with another ceremony's challenge: %d; want 403", status)
	}
	_, m = b.call("AuthService/BeginLogin", words{})
	message = words{"ceremony": m["ceremony"], "credential": b.auth.get(t, m["options"].(string)), "name": "x"}
	if status, _ := b.call("AuthService/FinishPair", message); status != http.StatusForbidden {
		t.Errorf("a login's ceremony used for pairing: %d; want 403", status)
	}
	_, m = b.call("AuthService/BeginLogin", words{})
	message = words{"ceremony": m["ceremony"], "credential": b.auth.get(t, m["options"].(string))}
	r.clock.forward(riteTime)
	if status, _ := b.call("AuthService/FinishLogin", message); status != http.StatusForbidden {
		t.Errorf("too late: %d; want 403", status)
	}
}

// TestStolenCookie: a stolen cookie ends with its device: at once, also in the
// middle of a stream.
func TestStolenCookie(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, r *rig, b *browser){
		"revoked": func(t *testing.T, r *rig, _ *browser) {
			if err := r.Revoke(t.Context(), r.devices.all()[0].ID, "test"); err != nil {
				t.Error(err)
			}
		},
		"logged out": func(t *testing.T, _ *rig, b *browser) {
			if status, _ := b.call("AuthService/Logout", words{}); status != http.StatusOK {
				t.Error(status)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			b, thief := r.paired(t, false), r.browser(t)
			thief.client.Jar = &stolen{cookies: b.client.Jar.Cookies(b.request("x", nil).URL)}
			if status := thief.looks(); status != http.StatusOK {
				t.Fatalf("control: %d; want 200", status)
			}
			answer, err := thief.client.Do(thief.request("ApprovalService/Watch", words{}))
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			end(t, r, b)
			if _, err := io.ReadAll(answer.Body); err != nil { // the handler returned; the client's own time limit would be an error
				t.Errorf("the stream goes on: %v", err)
			}
			if status := thief.looks(); status != http.StatusUnauthorized {
				t.Errorf("afterwards: %d; want 401", status)
			}
			if n := r.items.kept(loginItems); n != 0 {
				t.Errorf("%d logins are kept", n)
			}
		})
	}
}

// stolen is a cookie jar that forgets nothing.
type stolen struct{ cookies []*http.Cookie }

// TestLoginRunsOut: a login that is not used for 12 hours is over, and any is
// after 30 days.
func TestLoginRunsOut(t *testing.T) {
	r := newRig(t)
	b := r.paired(t, false)
	for range 4 {
		r.clock.forward(loginIdle - time.Minute)
		if status := b.looks(); status != http.StatusOK {
			t.Fatalf("used every 12 hours: %d; want 200", status)
		}
	}
	r.clock.forward(loginIdle)
	if status := b.looks(); status != http.StatusUnauthorized {
		t.Errorf("after 12 idle hours: %d; want 401", status)
	}
	if status := b.login(); status != http.StatusOK {
		t.Fatal(status)
	}
	for range 61 {
		r.clock.forward(loginIdle - time.Second)
		b.looks()
	}
	if status := b.looks(); status != http.StatusUnauthorized {
		t.Errorf("after 30 days: %d; want 401", status)
	}
}

// TestRestart: devices and logins are there when the relay is started anew, and
// what was revoked is not.
func TestRestart(t *testing.T) {
	r := newRig(t)
	b, out := r.paired(t, false), r.paired(t, true)
	if err := r.Revoke(t.Context(), r.devices.all()[1].ID, "test"); err != nil {
		t.Fatal(err)
	}
	items := r.items
	r2 := newRig(t, func(o *Options) { o.Items = items })
	for _, one := range []struct {
		*browser
		want int
	}{{b, http.StatusOK}, {out, http.StatusUnauthorized}} {
		other := r2.browser(t)
		other.client.Jar = &stolen{cookies: one.client.Jar.Cookies(one.request("x", nil).URL)}
		if status := other.looks(); status != one.want {
			t.Errorf("with the old cookie: %d; want %d", status, one.want)
		}
	}
	again := r2.browser(t)
	again.auth = b.auth
	again.auth.origin = r2.origin
	if status := again.login(); status != http.StatusOK {
		t.Errorf("with the old passkey: %d; want 200", status)
	}
}

// TestNothingWithoutRecord: nobody gets in where that can't be recorded or
// kept.
func TestNothingWithoutRecord(t *testing.T) {
	for name, fail := range map[string]func(*rig){
		"recorder": func(r *rig) { r.records.fail = errors.New("disk full") },
		"store":    func(r *rig) { r.items.fail = errors.New("disk full") },
	} {
		r := newRig(t)
		b := r.paired(t, false)
		fail(r)
		fresh := r.browser(t)
		fresh.auth = b.auth
		if status := fresh.login(); status != http.StatusInternalServerError || fresh.looks() != http.StatusUnauthorized {
			t.Errorf("%s fails: login %d; want 500 and no cookie", name, status)
		}
		if _, err := r.Pair(t.Context(), false); name == "recorder" && err == nil {
			t.Error("a code that is not recorded")
		}
	}
}

func (s *stolen) Cookies(*url.URL) []*http.Cookie { return s.cookies }

// SetCookies takes none.
func (s *stolen) SetCookies(*url.URL, []*http.Cookie) {}
