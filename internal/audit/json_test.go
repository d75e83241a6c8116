package audit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

// TestEventsAreWrittenAsJSON compares with the encoder that knows the type.
func TestEventsAreWrittenAsJSON(t *testing.T) {
	if n := reflect.TypeFor[bawn.Event]().NumField(); n != 22 {
		t.Fatalf("an event has %d fields; appendEvent and this test know 22", n)
	}
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,20}`), rapid.Just(""), rapid.Just("<a&b>\x00\x7f\u2028\xff"))
	rapid.Check(t, func(t *rapid.T) {
		e := bawn.Event{
			ID: text.Draw(t, "id"), Time: time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "time"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
			Session: text.Draw(t, "session"), Parent: text.Draw(t, "parent"), Agent: text.Draw(t, "agent"), Kind: text.Draw(t, "kind"),
			Operation: text.Draw(t, "operation"), Resource: text.Draw(t, "resource"), Args: rapid.SliceOfN(text, 0, 4).Draw(t, "args"),
			Dir: text.Draw(t, "dir"), Requested: bawn.Verdict(rapid.Uint8Range(0, 4).Draw(t, "requested")),
			Resolved: bawn.Verdict(rapid.Uint8Range(0, 4).Draw(t, "resolved")), Source: text.Draw(t, "source"), Rule: text.Draw(t, "rule"),
			Reason: text.Draw(t, "reason"), Ticket: text.Draw(t, "ticket"), Provider: text.Draw(t, "provider"),
			Mode: bawn.Mode(rapid.Uint8Range(0, 7).Draw(t, "mode")), DurationMS: rapid.Int64().Draw(t, "duration"),
			Bytes: rapid.Int64Range(-1, 3).Draw(t, "bytes"), Details: rapid.MapOfN(text, text, 0, 4).Draw(t, "details"),
		}
		if rapid.Bool().Draw(t, "ended") {
			e.Exit = new(rapid.IntRange(-1, 255).Draw(t, "exit"))
		}
		got, err := appendEvent(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
		if string(got)+"\n" != want.String() {
			t.Fatalf("got\n%s, want\n%s", got, &want)
		}
	})
}

func TestEventWithoutAYearOfFourDigitsIsRefused(t *testing.T) {
	if b, err := appendEvent(nil, &bawn.Event{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Errorf("got %s", b)
	}
}
