package secrets

import (
	"context"
	"fmt"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// Bind permits a secret to be put into requests as b says. The same binding twice is an
// error, and so is a place or a file that another secret has.
func (v *Vault) Bind(ctx context.Context, b bawn.Binding) error {
	if err := bindable(b); err != nil {
		return err
	}
	_, err := v.change(ctx, func(idx *index) error {
		r := idx.find(b.Secret)
		if r == nil {
			return unknown(idx, b.Secret)
		}
		if !r.SingleLine {
			return failure("set a value of one line", "the value of %q has control characters; it can't stand in a request", b.Secret)
		}
		if err := idx.conflict(b); err != nil {
			return err
		}
		r.Bindings = append(r.Bindings, binding{b.Host, b.Place, b.Name, b.File, b.Format, b.Env})
		return nil
	})
	return err
}

// bindable is checkBinding, and refuses a host that no session reaches: it would
// keep those that use the secret from starting.
func bindable(b bawn.Binding) error {
	if err := checkBinding(b); err != nil {
		return err
	}
	if _, err := netrule.ParseHost(b.Host); err != nil {
		return fmt.Errorf("the binding of %q: %w", b.Secret, err)
	}
	return nil
}

// conflict refuses an existing binding, and a variable or a whole file that
// another secret has.
func (idx *index) conflict(b bawn.Binding) error {
	for _, r := range idx.Secrets {
		for _, other := range r.bindings() {
			switch {
			case other == b:
				return failure("see bawn secret list", "%q is bound to %q in that way already", b.Secret, b.Host)
			case other.Secret != b.Secret && b.Env != "" && other.Env == b.Env:
				return failure("take another variable", "the variable %q belongs to %q already", b.Env, other.Secret)
			case b.File != "" && other.File == b.File && kindOf(other.Format) != kindOf(b.Format):
				return failure("take another file", "the file %q is of format %q for %q already", b.File, other.Format, other.Secret)
			case other.Secret != b.Secret && b.File != "" && other.File == b.File && kindOf(b.Format) == AWSFormat && profileOf(other) == profileOf(b):
				return failure("take another profile: --format aws:PROFILE", "the profile %q of %q belongs to %q already", profileOf(b), b.File, other.Secret)
			case other.Secret != b.Secret && b.File != "" && other.File == b.File && kindOf(b.Format) == "raw":
				return failure("take another file", "the file %q belongs to %q already", b.File, other.Secret)
			}
		}
	}
	return nil
}

// Unbind takes away the bindings of like.Secret that agree with every field of
// like that is not empty, and says how many those were.
func (v *Vault) Unbind(ctx context.Context, like bawn.Binding) (int, error) {
	n := 0
	_, err := v.change(ctx, func(idx *index) error {
		r := idx.find(like.Secret)
		if r == nil {
			return unknown(idx, like.Secret)
		}
		before := len(r.Bindings)
		r.Bindings = slices.DeleteFunc(r.Bindings, func(b binding) bool { return agrees(like, b.of(r.Name)) })
		n = before - len(r.Bindings)
		return nil
	})
	return n, err
}

func agrees(like, b bawn.Binding) bool {
	same := func(want, is string) bool { return want == "" || want == is }
	return same(like.Host, b.Host) && (like.Place == 0 || like.Place == b.Place) && same(like.Name, b.Name) &&
		same(like.File, b.File) && same(like.Format, b.Format) && same(like.Env, b.Env)
}

// Bindings returns the bindings of the named secrets for one session, each with a
// placeholder. All bindings of a secret have the same placeholder; each call makes new
// ones. It loads the values, so it may ask for the passphrase. A name without a binding
// is an error.
func (v *Vault) Bindings(ctx context.Context, names []string) ([]bawn.Binding, error) {
	idx, err := v.index()
	if err != nil {
		return nil, err
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	var out []bawn.Binding
	for _, name := range names {
		r := idx.find(name)
		switch {
		case r == nil:
			return nil, unknown(idx, name)
		case len(r.Bindings) == 0:
			return nil, failure(fmt.Sprintf("bind it: bawn secret bind %s --host HOST --bearer", name), "the secret %q is bound to nothing", name)
		}
		value, err := v.value(ctx, idx, r)
		if err != nil {
			return nil, err
		}
		if err := needsKey(r, value.Reveal()); err != nil {
			return nil, err
		}
		placeholder, err := Placeholder(value.Reveal())
		if err != nil {
			return nil, fmt.Errorf("the secret %q: %w", name, err)
		}
		for _, b := range r.bindings() {
			b.Placeholder = placeholder
			out = append(out, b)
		}
	}
	return out, nil
}

// Lend returns the value for one use in a session (bawn.SecretSource). It reads the index
// each time: it refuses a removed binding or secret, and returns a changed value. The
// caller must not keep the Secret, and need not zero it.
func (v *Vault) Lend(ctx context.Context, session string, b bawn.Binding) (bawn.Secret, error) {
	if session == "" {
		return bawn.Secret{}, fmt.Errorf("the secret %q was asked for outside a session", b.Secret)
	}
	idx, err := v.index()
	if err != nil {
		return bawn.Secret{}, err
	}
	b.Placeholder = ""
	r := idx.find(b.Secret)
	if r == nil || !slices.Contains(r.bindings(), b) {
		return bawn.Secret{}, failure("bind it: bawn secret bind "+b.Secret, "the secret %q is not bound to %q at %s", b.Secret, b.Host, b.Place)
	}
	value, err := v.value(ctx, idx, r)
	if err != nil {
		return bawn.Secret{}, err
	}
	v.noteUse(r.ID)
	return value, nil
}
