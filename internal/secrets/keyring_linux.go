package secrets

import (
	"context"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// hasBus reports whether environ names a session bus that is there already.
// Without one the library would start its own, which would never end.
func hasBus(environ []string) bool {
	address := ""
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, "DBUS_SESSION_BUS_ADDRESS="); ok {
			address = v
		}
	}
	return strings.HasPrefix(address, "unix:")
}

// keyringThere reports whether the session bus has, or could start, a Secret
// Service. A bus that does not answer is an error: a keyring that fails is not
// the same as none.
func keyringThere(ctx context.Context, environ []string, wait time.Duration) (bool, error) {
	if !hasBus(environ) {
		return false, nil
	}
	there := false
	_, err := within(ctx, wait, func() ([]byte, error) {
		var err error
		there, err = secretService()
		return nil, err
	})
	return there, err
}

// secretService asks the bus (D-Bus specification, "Message Bus Messages").
func secretService() (bool, error) {
	const name = "org.freedesktop.secrets"
	conn, err := dbus.SessionBus()
	if err != nil {
		return false, failure("mend the session bus, or use --store file", "the session bus: %w", err)
	}
	var owned bool
	if err := conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, name).Store(&owned); err != nil || owned {
		return owned, keyringError(err)
	}
	var names []string
	if err := conn.BusObject().Call("org.freedesktop.DBus.ListActivatableNames", 0).Store(&names); err != nil {
		return false, keyringError(err)
	}
	for _, n := range names {
		if n == name {
			return true, nil
		}
	}
	return false, nil
}
