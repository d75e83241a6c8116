package webui

import (
	"testing"
	"time"

	"connectrpc.com/connect"
)

// id is the browser's own device.
func (b *browser) id() string {
	b.t.Helper()
	_, me := b.call("AuthService/Me", words{})
	id, _ := me["device"].(string)
	return id
}

// TestTouch: a touch of the device's own passkey counts once, and for what it was
// begun for.
func TestTouch(t *testing.T) {
	r := newRig(t)
	anna, other := r.paired(t, false), r.paired(t, false)
	device := anna.id()
	const purpose = "undo session plan"
	begin := func() (ceremony, options string) {
		t.Helper()
		ceremony, options, err := r.BeginTouch(t.Context(), device, purpose)
		if err != nil {
			t.Fatal(err)
		}
		return ceremony, options
	}
	refused := func(name string, err error) {
		t.Helper()
		if connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("%s: %v, want it denied", name, err)
		}
	}
	ceremony, options := begin()
	touched := anna.auth.get(t, options)
	if err := r.FinishTouch(t.Context(), device, purpose, ceremony, touched); err != nil {
		t.Errorf("control: %v", err)
	}
	refused("a second time", r.FinishTouch(t.Context(), device, purpose, ceremony, touched))
	ceremony, _ = begin()
	refused("an old touch in a new ceremony", r.FinishTouch(t.Context(), device, purpose, ceremony, touched))
	ceremony, options = begin()
	refused("for something else", r.FinishTouch(t.Context(), device, "undo session other", ceremony, anna.auth.get(t, options)))
	ceremony, options = begin()
	refused("another device's passkey", r.FinishTouch(t.Context(), device, purpose, ceremony, other.auth.get(t, options)))
	ceremony, options = begin()
	refused("another device", r.FinishTouch(t.Context(), other.id(), purpose, ceremony, other.auth.get(t, options)))
	ceremony, options = begin()
	anna.auth.flags = 0x01
	refused("nobody verified", r.FinishTouch(t.Context(), device, purpose, ceremony, anna.auth.get(t, options)))
	anna.auth.flags = 0x05
	_, m := anna.call("AuthService/BeginLogin", words{})
	refused("a login", r.FinishTouch(t.Context(), device, "", m["ceremony"].(string), anna.auth.get(t, m["options"].(string))))
	ceremony, options = begin()
	if status, _ := anna.call("AuthService/FinishLogin", words{"ceremony": ceremony, "credential": anna.auth.get(t, options)}); status == 200 {
		t.Error("a touch logs in")
	}
	ceremony, options = begin()
	r.clock.forward(riteTime + time.Second)
	refused("too late", r.FinishTouch(t.Context(), device, purpose, ceremony, anna.auth.get(t, options)))
	ceremony, options = begin()
	if err := r.Revoke(t.Context(), device, "test"); err != nil {
		t.Fatal(err)
	}
	refused("a revoked device", r.FinishTouch(t.Context(), device, purpose, ceremony, anna.auth.get(t, options)))
	_, _, err := r.BeginTouch(t.Context(), device, purpose)
	refused("a revoked device begins", err)
	_, _, err = r.BeginTouch(t.Context(), other.id(), "")
	refused("for nothing", err)
}
