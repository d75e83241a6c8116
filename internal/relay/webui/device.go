package webui

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
)

// A Device is a browser that was paired, with its passkey.
type Device struct {
	ID         string
	Name       string // that a human gave it
	ReadOnly   bool   // may look, and answer nothing
	Paired     time.Time
	Seen       time.Time
	Handle     []byte // user.id of its passkey
	Credential webauthn.Credential
	Push       *Subscription // nil: it gets no notices
}

// WebAuthnID is webauthn.User's.
func (d *Device) WebAuthnID() []byte { return d.Handle }

// WebAuthnName is webauthn.User's.
func (d *Device) WebAuthnName() string { return "bawn" }

// WebAuthnDisplayName is webauthn.User's.
func (d *Device) WebAuthnDisplayName() string { return "Bawn" }

// WebAuthnCredentials is webauthn.User's.
func (d *Device) WebAuthnCredentials() []webauthn.Credential {
	if d.Credential.ID == nil {
		return nil
	}
	return []webauthn.Credential{d.Credential}
}

var _ webauthn.User = (*Device)(nil)

// maxDevices is how many devices may be paired.
const maxDevices = 100

var errNoDevice = errors.New("there is no such device; \"bawn pair --list\" shows all")

// devices are the paired devices, in memory and in the store.
type devices struct {
	items Items
	mu    sync.Mutex
	byID  map[string]Device
}

func loadDevices(ctx context.Context, items Items) (*devices, error) {
	kept, err := items.Items(ctx, deviceItems)
	if err != nil {
		return nil, fmt.Errorf("read the paired devices: %w", err)
	}
	d := &devices{items: items, byID: map[string]Device{}}
	for id, text := range kept {
		var one Device
		if err := json.Unmarshal(text, &one); err != nil || one.ID != id {
			return nil, fmt.Errorf("device %q in the store can't be read (%v); remove it", id, err)
		}
		d.byID[id] = one
	}
	return d, nil
}

// get returns a device; ok is false if no device has the ID.
func (d *devices) get(id string) (Device, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, ok := d.byID[id]
	return one, ok
}

// all returns the devices, the oldest first.
func (d *devices) all() []Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Device
	for _, one := range d.byID {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Device) int { return cmp.Or(a.Paired.Compare(b.Paired), cmp.Compare(a.ID, b.ID)) })
	return out
}

// byCredential returns the device that has the passkey.
func (d *devices) byCredential(id []byte) (Device, bool) {
	for _, one := range d.all() {
		if slices.Equal(one.Credential.ID, id) {
			return one, true
		}
	}
	return Device{}, false
}

// add keeps a new device. It gets its ID here.
func (d *devices) add(ctx context.Context, one Device) (Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byID) >= maxDevices {
		return Device{}, fmt.Errorf("%d devices are paired; revoke one first", maxDevices)
	}
	one.ID = strings.ToLower(rand.Text())
	return one, d.keep(ctx, one)
}

// change changes a device that is still there.
func (d *devices) change(ctx context.Context, id string, edit func(*Device)) (Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, ok := d.byID[id]
	if !ok {
		return Device{}, errNoDevice
	}
	edit(&one)
	return one, d.keep(ctx, one)
}

// keep is called with the lock held.
func (d *devices) keep(ctx context.Context, one Device) error {
	text, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("BUG(bawn): a device can't be written: %w", err)
	}
	if err := d.items.KeepItem(ctx, deviceItems, one.ID, text); err != nil {
		return fmt.Errorf("keep the device: %w", err)
	}
	d.byID[one.ID] = one
	return nil
}

// drop removes a device. It is gone from memory also where the store fails, so
// that a revoked device stays out as long as this process lives.
func (d *devices) drop(ctx context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.byID[id]; !ok {
		return errNoDevice
	}
	delete(d.byID, id)
	if err := d.items.DropItem(ctx, deviceItems, id); err != nil {
		return fmt.Errorf("remove the device from the store: %w", err)
	}
	return nil
}
