package git

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

var (
	zero = strings.Repeat("0", 40)
	idA  = strings.Repeat("a", 40)
	idB  = strings.Repeat("b", 40)
)

// pkt writes lines as pkt-lines; "" is a flush packet.
func pkt(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		if l == "" {
			b.WriteString("0000")
			continue
		}
		fmt.Fprintf(&b, "%04x%s", len(l)+4, l)
	}
	return b.String()
}

const caps = "\x00 report-status side-band-64k agent=git/2.39"

// An object goes into a pack made by hand: a whole one of kind, or a delta
// against the object base places before it or with the id baseID.
type object struct {
	kind   byte
	text   []byte
	base   int
	baseID string
}

// packOf writes a pack, and lies about nothing.
func packOf(objects ...object) string {
	var b bytes.Buffer
	b.WriteString("PACK")
	b.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 2), uint32(len(objects))))
	var starts []int
	for i, o := range objects {
		starts = append(starts, b.Len())
		writeHead(&b, o.kind, len(o.text))
		switch o.kind {
		case objOfsDelta:
			b.Write(distance(starts[i] - starts[i-o.base]))
		case objRefDelta:
			for j := 0; j < len(o.baseID); j += 2 {
				var x byte
				fmt.Sscanf(o.baseID[j:j+2], "%02x", &x)
				b.WriteByte(x)
			}
		}
		z := zlib.NewWriter(&b)
		z.Write(o.text)
		z.Close()
	}
	b.WriteString(strings.Repeat("\x00", 20)) // the checksum is the server's to check
	return b.String()
}

func writeHead(b *bytes.Buffer, kind byte, size int) {
	c := kind<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		b.WriteByte(c | 0x80)
		c = byte(size & 0x7f)
	}
	b.WriteByte(c)
}

func distance(n int) []byte {
	out := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		out = append([]byte{0x80 | byte(n&0x7f)}, out...)
	}
	return out
}

func commitText(message string, parents ...string) []byte {
	var b strings.Builder
	b.WriteString("tree " + zero + "\n")
	for _, p := range parents {
		b.WriteString("parent " + p + "\n")
	}
	b.WriteString("author a <a@example.com> 1 +0000\ncommitter a <a@example.com> 1 +0000\n\n" + message + "\n")
	return []byte(b.String())
}

// insertion is a delta that throws its base away and inserts text.
func insertion(base, text []byte) []byte {
	size := func(n int) []byte { return []byte{byte(n&0x7f) | 0x80, byte(n >> 7)} }
	out := append(size(len(base)), size(len(text))...)
	for len(text) > 0 {
		n := min(len(text), 127)
		out = append(append(out, byte(n)), text[:n]...)
		text = text[n:]
	}
	return out
}

// push inspects an update of refs/heads/x from a to the commit with this text.
func push(t *testing.T, old string, new []byte, pack string, before ...string) Update {
	t.Helper()
	lines := append(slices.Clone(before), old+" "+commitID(new, 40)+" refs/heads/x"+caps, "")
	body := pkt(lines...) + pack
	op, again, err := Inspector{Dir: t.TempDir()}.Push(Operation{Discovery: true}, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got, err := io.ReadAll(again); err != nil || string(got) != body {
		t.Errorf("the replay differs: %v, %d bytes of %d", err, len(got), len(body))
	}
	if op.Kind != Push || op.Discovery || !op.Complete || len(op.Updates) != 1 {
		t.Fatalf("got %+v", op)
	}
	return op.Updates[0]
}

// TestDescent: only commits that lead back to the old one prove anything.
func TestDescent(t *testing.T) {
	one := commitText("one", idA)
	two := commitText("two", commitID(one, 40))
	merge := commitText("merge", idB, commitID(two, 40))
	orphan := commitText("orphan")
	other := commitText("other", idB)
	blob := object{kind: objBlob, text: []byte("blob")}
	whole := func(text []byte) object { return object{kind: objCommit, text: text} }
	tests := []struct {
		name   string
		new    []byte
		pack   string
		before []string
		want   string // in Why; "" is proven
	}{
		{"next commit", one, packOf(whole(one), blob), nil, ""},
		{"two commits", two, packOf(whole(two), whole(one)), nil, ""},
		{"in any order", two, packOf(whole(one), blob, whole(two)), nil, ""},
		{"second parent", merge, packOf(whole(merge), whole(two), whole(one)), nil, ""},
		{"delta by offset", two, packOf(whole(one), object{kind: objOfsDelta, base: 1, text: insertion(one, two)}), nil, ""},
		{"delta by id", two, packOf(whole(one), object{kind: objRefDelta, baseID: commitID(one, 40), text: insertion(one, two)}), nil, ""},
		{"delta before its base", two, packOf(object{kind: objRefDelta, baseID: commitID(one, 40), text: insertion(one, two)}, whole(one)), nil, ""},
		{"delta of a delta before its base", two, packOf(
			object{kind: objRefDelta, baseID: commitID(orphan, 40), text: insertion(orphan, one)},
			object{kind: objOfsDelta, base: 1, text: insertion(one, two)}, whole(orphan)), nil, ""},
		{"empty pack", one, packOf(), nil, "not in the pack"},
		{"only a blob", one, packOf(blob), nil, "not in the pack"},
		{"an orphan", orphan, packOf(whole(orphan)), nil, "does not descend"},
		{"from elsewhere", other, packOf(whole(other)), nil, "do not lead"},
		{"a gap", two, packOf(whole(two), whole(other)), nil, "do not lead"},
		{"one beside it descends", other, packOf(whole(other), whole(one)), nil, "do not lead"},
		{"the text as a blob", one, packOf(object{kind: objBlob, text: one}), nil, "not in the pack"},
		{"a blob's delta", two, packOf(object{kind: objBlob, text: one}, object{kind: objOfsDelta, base: 1, text: insertion(one, two)}), nil, "not in the pack"},
		{"delta against what is not there", two, packOf(object{kind: objRefDelta, baseID: idB, text: insertion(one, two)}, whole(one)), nil, "not in the pack"},
		{"parent in the message", commitText("parent " + idA), packOf(whole(commitText("parent " + idA))), nil, "does not descend"},
		{"cut by a shallow line", two, packOf(whole(two), whole(one)), []string{"shallow " + commitID(one, 40)}, "does not descend"},
		{"shallow at the old one", two, packOf(whole(two), whole(one)), []string{"shallow " + idA}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := push(t, idA, tt.new, tt.pack, tt.before...)
			if u.FastForward != (tt.want == "") || !strings.Contains(u.Why, tt.want) || u.Force() == u.FastForward {
				t.Errorf("got %+v, want %q", u, tt.want)
			}
		})
	}
}

// TestZeroUpdateIsForce: what nobody has looked at is not permitted.
func TestZeroUpdateIsForce(t *testing.T) {
	rules := []Rule{{Push: true, Repo: "**", Ref: "**"}}
	for _, op := range []Operation{
		{},
		{Kind: Push, Repo: "r"},
		{Kind: Push, Repo: "r", Complete: true, Updates: []Update{{}}},
		{Kind: Push, Repo: "r", Complete: true, Updates: []Update{{Old: idA, New: idB, Ref: "refs/heads/x"}}},
		{Kind: Push, Repo: "r", Complete: true, Updates: []Update{{Old: idA, New: zero, Ref: "refs/heads/x", FastForward: true}}},
		{Kind: Push, Repo: "r", Complete: true, Updates: []Update{{Old: idA, New: idB, Ref: "refs/tags/x", FastForward: true}}},
		{Kind: Push, Repo: "r", Complete: true, Updates: []Update{{Old: zero, New: idB, Ref: "HEAD"}}},
		{Kind: Push, Repo: "r", Complete: true, Options: []string{"x"}, Updates: []Update{{Old: zero, New: idB, Ref: "refs/heads/x"}}},
	} {
		if ok, reason := Allow(op, rules); ok || reason == "" {
			t.Errorf("%+v is permitted", op)
		}
	}
	fine := Operation{Kind: Push, Repo: "r", Complete: true, Updates: []Update{{Old: idA, New: idB, Ref: "refs/heads/x", FastForward: true}}}
	if ok, reason := Allow(fine, rules); !ok {
		t.Errorf("control: %s", reason)
	}
	for _, rules := range [][]Rule{nil, {{}}, {{Push: true}}, {{Push: true, Repo: "r"}}, {{Push: true, Ref: "**"}}, {{Repo: "r", Ref: "**"}}} {
		if ok, _ := Allow(fine, rules); ok {
			t.Errorf("rules %+v permit a push", rules)
		}
	}
}

// TestUpdate: what an update is follows from its ids alone, but for a proof.
func TestUpdate(t *testing.T) {
	tests := []struct {
		u                     Update
		create, delete, force bool
	}{
		{Update{}, false, true, true},
		{Update{Old: zero, New: idA, Ref: "refs/heads/x"}, true, false, false},
		{Update{Old: zero, New: idA, Ref: "refs/tags/x"}, true, false, false},
		{Update{Old: idA, New: zero, Ref: "refs/heads/x"}, false, true, true},
		{Update{Old: idA, New: zero, Ref: "refs/heads/x", FastForward: true}, false, true, true},
		{Update{Old: idA, New: idB, Ref: "refs/heads/x"}, false, false, true},
		{Update{Old: idA, New: idB, Ref: "refs/heads/x", FastForward: true}, false, false, false},
		{Update{Old: idA, New: idB, Ref: "refs/tags/x", FastForward: true}, false, false, true},
	}
	for _, tt := range tests {
		if c, d, f := tt.u.Create(), tt.u.Delete(), tt.u.Force(); c != tt.create || d != tt.delete || f != tt.force {
			t.Errorf("%+v: create %v, delete %v, force %v", tt.u, c, d, f)
		}
	}
}

// TestRulesHoldTogether: repository, ref and direction come from one rule.
func TestRulesHoldTogether(t *testing.T) {
	rules := []Rule{
		{Repo: "o/read", Ref: "**"},
		{Push: true, Repo: "o/app", Ref: "refs/heads/agent/*"},
		{Push: true, Repo: "o/lib", Ref: "refs/heads/main", Options: true},
	}
	push := func(repo, ref string, options ...string) Operation {
		return Operation{Kind: Push, Repo: repo, Complete: true, Options: options, Updates: []Update{{Old: zero, New: idA, Ref: ref}}}
	}
	for _, tt := range []struct {
		op   Operation
		want bool
	}{
		{push("o/app", "refs/heads/agent/x"), true},
		{push("o/lib", "refs/heads/main"), true},
		{push("o/lib", "refs/heads/main", "ci.skip"), true},
		{push("o/app", "refs/heads/main"), false},
		{push("o/lib", "refs/heads/agent/x"), false},
		{push("o/app", "refs/heads/agent/x", "ci.skip"), false},
		{push("o/read", "refs/heads/agent/x"), false},
		{Operation{Kind: Push, Repo: "o/read", Discovery: true}, false},
		{Operation{Kind: Push, Repo: "o/read", LFS: true}, false},
		{Operation{Kind: Push, Repo: "o/app", LFS: true}, true},
		{Operation{Kind: Fetch, Repo: "o/read"}, true},
		{Operation{Kind: Fetch, Repo: "o/app"}, true},
		{Operation{Kind: Fetch, Repo: "o/other"}, false},
		{Operation{Kind: None, Repo: "o/app"}, false},
	} {
		if ok, reason := Allow(tt.op, rules); ok != tt.want || ok == (reason != "") {
			t.Errorf("%+v: %v, %q; want %v", tt.op, ok, reason, tt.want)
		}
	}
}

// goodHead is a push that is read; the bad ones below differ from it.
var goodHead = idA + " " + idB + " refs/heads/x" + caps

// TestBadHeads: what receive-pack might read otherwise is not read at all.
func TestBadHeads(t *testing.T) {
	update := func(ref string) string { return idA + " " + idB + " " + ref }
	pack := packOf()
	cert := []string{"push-cert\x00push-cert=x atomic\n", "certificate version 0.1\n", "pusher a\n", "nonce b\n", "\n"}
	tests := []struct{ name, body string }{
		{"nothing behind the commands", pkt(goodHead, "")},
		{"more commands behind the flush", pkt(goodHead, "", update("refs/heads/main"), "") + pack},
		{"capabilities again", pkt(goodHead, update("refs/heads/y")+caps, "") + pack},
		{"ref behind a second NUL", pkt(goodHead+"\x00"+update("refs/heads/main"), "") + pack},
		{"late capabilities", pkt(update("refs/heads/y"), goodHead, "") + pack},
		{"shallow behind a command", pkt(goodHead, "shallow "+idA, "") + pack},
		{"ref named twice", pkt(goodHead, update("refs/heads/x"), "") + pack},
		{"HEAD", pkt(update("HEAD")+caps, "") + pack},
		{"two lines in one", pkt(update("refs/heads/x\n"+update("refs/heads/main"))+caps, "") + pack},
		{"two spaces", pkt(idA+"  "+idB+" refs/heads/x"+caps, "") + pack},
		{"short id", pkt(idA[1:]+" "+idB+" refs/heads/x"+caps, "") + pack},
		{"upper case id", pkt(strings.ToUpper(idA)+" "+idB+" refs/heads/x"+caps, "") + pack},
		{"nothing to nothing", pkt(zero+" "+zero+" refs/heads/x"+caps, "") + pack},
		{"id of the other format", pkt(goodHead+" object-format=sha256", "") + pack},
		{"format without a name", pkt(goodHead+" object-format=md5", "") + pack},
		{"ids of two formats", pkt(idA+" "+strings.Repeat("b", 64)+" refs/heads/x"+caps, "") + pack},
		{"delimiter", strings.Replace(pkt(goodHead, ""), "0000", "0001", 1) + pack},
		{"length 3", "0003" + pkt(goodHead, "") + pack},
		{"length in plus", "+0a0" + pkt(goodHead, "")},
		{"length with a prefix", "0x0a" + pkt(goodHead, "")},
		{"length too long", "fff1" + strings.Repeat("a", 0xfff1)},
		{"cut off", pkt(goodHead, "")[:100]},
		{"no flush", pkt(goodHead)},
		{"empty line", pkt(goodHead) + "0004" + "0000" + pack},
		{"no pack", pkt(goodHead, "") + "KCAP"},
		{"certificate without end", pkt(append(cert, update("refs/heads/x")+"\n", "")...) + pack},
		{"certificate without signature", pkt(append(cert, update("refs/heads/x")+"\n", "push-cert-end\n", "")...) + pack},
		{"commands beside the certificate", pkt(append(cert, update("refs/heads/x")+"\n", signature+"X\n", "push-cert-end\n", update("refs/heads/y"), "")...) + pack},
		{"certificate after a command", pkt(append([]string{update("refs/heads/y")}, append(cert, signature+"X\n", "push-cert-end\n", "")...)...) + pack},
		{"two lines in one packet of the certificate", pkt(append(cert, update("refs/heads/x")+"\n"+update("refs/heads/y")+"\n", signature+"X\n", "push-cert-end\n", "")...) + pack},
		{"new ref, and no pack", pkt(zero+" "+idB+" refs/heads/x"+caps, "") + "KCAP"},
		{"new ref, and commands behind the flush", pkt(zero+" "+idB+" refs/heads/x"+caps, "", update("refs/heads/main"), "") + pack},
		{"option line without end", pkt(goodHead+" push-options", "", "x") + pack},
	}
	for _, tt := range tests {
		if op, _, err := (Inspector{}).Push(Operation{}, strings.NewReader(tt.body)); err == nil {
			t.Errorf("%s is read as %+v", tt.name, op)
		}
	}
	for _, body := range []string{pkt(goodHead, "") + pack, pkt(append(cert, update("refs/heads/x")+"\n", signature+"X\n", "push-cert-end\n", "")...) + pack, pkt(goodHead+" push-options", "", "ci.skip", "") + pack} {
		op, again, err := Inspector{}.Push(Operation{}, strings.NewReader(body))
		if err != nil || len(op.Updates) != 1 || op.Updates[0].Ref != "refs/heads/x" || op.Updates[0].Force() != true {
			t.Fatalf("control: %+v, %v", op, err)
		}
		again.Close()
	}
}

// TestNothingToPush: a single flush goes on without what follows it, and a
// client that leaves is no error of its own.
func TestNothingToPush(t *testing.T) {
	op, again, err := Inspector{}.Push(Operation{}, strings.NewReader("0000"+pkt(goodHead, "")+packOf()))
	if err != nil || len(op.Updates) != 0 || !op.Complete {
		t.Fatalf("got %+v, %v", op, err)
	}
	if got, err := io.ReadAll(again); string(got) != "0000" || err != nil {
		t.Errorf("the replay is %q, %v", got, err)
	}
	if _, _, err := (Inspector{}).Push(Operation{}, strings.NewReader("")); !errors.Is(err, ErrNoCommands) {
		t.Errorf("got %v", err)
	}
}
