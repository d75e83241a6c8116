package secrets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name under which the keyring keeps our values.
const service = "bawn"

// useFiles is the remedy for most troubles with a keyring.
const useFiles = "unlock the keyring, or keep secrets in encrypted files with --store file"

// A systemKeyring is the Secret Service or the Keychain.
type systemKeyring struct{ environ []string }

func (k systemKeyring) put(_ context.Context, id string, value []byte) error {
	if err := k.ready(); err != nil {
		return err
	}
	err := keyring.Set(service, id, string(value))
	if errors.Is(err, keyring.ErrSetDataTooBig) {
		return failure("keep it in encrypted files with --store file", "the keyring takes no value of %d bytes", len(value))
	}
	return keyringError(err)
}

func (k systemKeyring) get(_ context.Context, id string) ([]byte, error) {
	if err := k.ready(); err != nil {
		return nil, err
	}
	value, err := keyring.Get(service, id)
	if errors.Is(err, keyring.ErrNotFound) {
		return nil, failure("somebody deleted it there; set it again, or remove it with bawn secret rm", "the keyring has no value %q", id)
	}
	return []byte(value), keyringError(err)
}

func (k systemKeyring) drop(_ context.Context, id string) error {
	if err := k.ready(); err != nil {
		return err
	}
	if err := keyring.Delete(service, id); !errors.Is(err, keyring.ErrNotFound) {
		return keyringError(err)
	}
	return nil
}

// ready refuses before the library would start a session bus by itself.
func (k systemKeyring) ready() error {
	if !hasBus(k.environ) {
		return failure("log in to the desktop whose keyring has it, or set it again with --store file", "the keyring can't be reached: this process has no session bus (DBUS_SESSION_BUS_ADDRESS)")
	}
	return nil
}

func keyringError(err error) error {
	if err == nil {
		return nil
	}
	return failure(useFiles, "the keyring: %w", err)
}

// bounded limits the wait for a store. A call that timed out may still finish later; what
// it wrote is noted as pending.
type bounded struct {
	keeping
	wait time.Duration
}

func (b bounded) put(ctx context.Context, id string, value []byte) error {
	mine := append([]byte(nil), value...) // the call may outlive the caller's
	_, err := within(ctx, b.wait, func() ([]byte, error) {
		defer clear(mine)
		return nil, b.keeping.put(ctx, id, mine)
	})
	return err
}

func (b bounded) get(ctx context.Context, id string) ([]byte, error) {
	return within(ctx, b.wait, func() ([]byte, error) { return b.keeping.get(ctx, id) })
}

func (b bounded) drop(ctx context.Context, id string) error {
	_, err := within(ctx, b.wait, func() ([]byte, error) { return nil, b.keeping.drop(ctx, id) })
	return err
}

// within runs f for at most wait. A panic of f, for the library trusts what
// the bus says, is an error.
func within(ctx context.Context, wait time.Duration, f func() ([]byte, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	type result struct {
		value []byte
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- result{nil, failure(useFiles, "the keyring answered what its library does not understand")}
			}
		}()
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return nil, failure(useFiles, "the keyring did not answer: %w", fmt.Errorf("waited %v: %w", wait, ctx.Err()))
	}
}
