package egress

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// words names every type that goes over the channel, with its fields.
func words(t reflect.Type, seen map[reflect.Type]bool, out *strings.Builder) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		words(t.Elem(), seen, out)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] || t.PkgPath() == "time" {
		return
	}
	seen[t] = true
	for f := range t.Fields() {
		fmt.Fprintf(out, "%s.%s %s %q\n", t.Name(), f.Name, f.Type, f.Tag)
		words(f.Type, seen, out)
	}
}

// TestProtocol fails when the words change: raise the number, then adapt this test.
func TestProtocol(t *testing.T) {
	const protocol, sum = "4", "18cf2b769c2d310b"
	var text strings.Builder
	words(reflect.TypeFor[Message](), map[reflect.Type]bool{}, &text)
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(text.String())))[:16]; got != sum || Protocol != protocol {
		t.Errorf("the words have the sum %q in protocol %q; this test knows %q in %q: where they have changed, raise Protocol, and put both here", got, Protocol, sum, protocol)
	}
}

// Two that don't agree are both named, with what to do.
func TestAgree(t *testing.T) {
	bawn, relay := Hello{"2", "1.3.0", "/opt/bawn"}, Hello{"1", "1.2.0", "/opt/bawnd"}
	err := Agree(bawn, relay)
	for _, want := range []string{`"/opt/bawn" (1.3.0, protocol 2)`, `"/opt/bawnd" (1.2.0, protocol 1)`, "install all programs of one release"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if err := Agree(Hello{}, Hello{}); err == nil {
		t.Error("two that have said nothing agree")
	}
	relay.Protocol = bawn.Protocol
	if err := Agree(bawn, relay); err != nil {
		t.Errorf("of one protocol: %v", err)
	}
}
