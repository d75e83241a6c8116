package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

func TestEventWithoutAYearOfFourDigitsIsRefused(t *testing.T) {
	if b, err := toJSON(&bawn.Event{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Errorf("got %s", b)
	}
}

func TestHTMLStaysLegible(t *testing.T) {
	b, err := toJSON(&bawn.Event{Resource: "a <b> && c"})
	if err != nil || !strings.Contains(string(b), `"resource":"a <b> && c"`) {
		t.Errorf("got %s, %v", b, err)
	}
}
