package approval

import (
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestDigestOf: two actions have one digest only if a human would be asked the same
// about both.
func TestDigestOf(t *testing.T) {
	base := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "make", Args: []string{"a", "b"}, Dir: "/w", Session: "s", Agent: "x", At: noon}
	seen := map[Digest]string{}
	for what, change := range map[string]func(a *bawn.Action) (zone, canonical string, more [][]string){
		"control":            func(*bawn.Action) (string, string, [][]string) { return "", "", nil },
		"another zone":       func(*bawn.Action) (string, string, [][]string) { return "execution", "", nil },
		"other words":        func(*bawn.Action) (string, string, [][]string) { return "", "make -j", nil },
		"an environment":     func(*bawn.Action) (string, string, [][]string) { return "", "", [][]string{{"A=1"}} },
		"two of them":        func(*bawn.Action) (string, string, [][]string) { return "", "", [][]string{{"A=1"}, {"r"}} },
		"two in one":         func(*bawn.Action) (string, string, [][]string) { return "", "", [][]string{{"A=1", "r"}} },
		"another directory":  func(a *bawn.Action) (string, string, [][]string) { a.Dir = "/v"; return "", "", nil },
		"another command":    func(a *bawn.Action) (string, string, [][]string) { a.Resource = "cmake"; return "", "", nil },
		"another kind":       func(a *bawn.Action) (string, string, [][]string) { a.Kind = bawn.Tool; return "", "", nil },
		"another operation":  func(a *bawn.Action) (string, string, [][]string) { a.Operation = bawn.Write; return "", "", nil },
		"arguments as one":   func(a *bawn.Action) (string, string, [][]string) { a.Args = []string{"ab"}; return "", "", nil },
		"arguments reversed": func(a *bawn.Action) (string, string, [][]string) { a.Args = []string{"b", "a"}; return "", "", nil },
	} {
		a := base
		zone, canonical, more := change(&a)
		d := DigestOf(zone, &a, canonical, more...)
		if other, ok := seen[d]; ok {
			t.Errorf("%s is taken for %s", what, other)
		}
		seen[d] = what
		a.Session, a.Agent, a.At = "t", "y", noon.Add(time.Hour)
		if DigestOf(zone, &a, canonical, more...) != d {
			t.Errorf("%s: who asks, and when, counts", what)
		}
	}
	if a := base; DigestOf("", &a, "make") != DigestOf("", &a, "") {
		t.Error("the same words are others where they are said twice")
	}
	a, b := base, base
	a.Kind, b.Kind, b.Dir = bawn.Network, bawn.Network, "/v"
	if DigestOf("", &a, "") != DigestOf("", &b, "") {
		t.Error("a connection depends on the directory")
	}
	of := func(resource string, args ...string) Digest {
		return DigestOf("", &bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: resource, Args: args}, "")
	}
	if of("a.example:80") != of("a.example:443") || of("[2001:db8::1]:80") != of("[2001:db8::1]:443") {
		t.Error("the two ports of the web are two questions")
	}
	apart := map[Digest]string{}
	for _, f := range []string{"a.example:443", "b.example:443", "a.example:22", "a.example:8443", "a.example:web", "[2001:db8::1]:443", "a.example:80 GET", "a.example:443 GET"} {
		w := strings.Fields(f)
		d := of(w[0], w[1:]...)
		if apart[d] != "" {
			t.Errorf("%s is taken for %s", f, apart[d])
		}
		apart[d] = f
	}
	d := DigestOf("", &a, "")
	if d.Also("x") == d || d.Also("x", "y") == d.Also("xy") || len(d.String()) != 64 || d.String() == d.Also().String() {
		t.Errorf("%v with more words is the same", d)
	}
}

// TestAnswers has what was said holds for its digest alone; what was given
// ahead is spent once, and not when its time is over.
func TestAnswers(t *testing.T) {
	var m Answers
	one, other := Digest{1}, Digest{2}
	yes, no := bawn.Answer{Verdict: bawn.Allow, By: "ann"}, bawn.Answer{Verdict: bawn.Deny, By: "bob"}
	if _, ok := m.Said(one); ok {
		t.Error("nothing was said")
	}
	if _, ok := m.Spend(one, noon); ok {
		t.Error("nothing was given")
	}
	m.Say(one, yes)
	m.Say(one, no)
	if a, ok := m.Said(one); !ok || a.By != "bob" {
		t.Errorf("%+v, %v; want what was said last", a, ok)
	}
	if _, ok := m.Said(other); ok {
		t.Error("it holds for another action")
	}
	m.Ahead(one, no, noon)
	m.Ahead(one, yes, noon.Add(time.Minute))
	m.Ahead(other, yes, time.Time{})
	if a, ok := m.Spend(one, noon); !ok || a.By != "ann" {
		t.Errorf("%+v, %v; want the one whose time is not over", a, ok)
	}
	if a, ok := m.Spend(one, noon); ok {
		t.Errorf("it is spent twice: %+v", a)
	}
	if _, ok := m.Spend(other, noon.Add(24*time.Hour)); !ok {
		t.Error("one without an end has ended")
	}
}
