package secrets

import (
	"context"

	"github.com/bawn-dev/bawn"
)

// Unbound returns the value of a secret for Bawn's own use, such as the address
// that notices are sent to. It refuses a secret that has bindings: such a secret is for
// guests, and used for nothing else.
func (v *Vault) Unbound(ctx context.Context, name string) (bawn.Secret, error) {
	idx, err := v.index()
	if err != nil {
		return bawn.Secret{}, err
	}
	r := idx.find(name)
	if r == nil {
		return bawn.Secret{}, failure("keep it: bawn secret set "+name, "there is no secret %q", name)
	}
	if len(r.bindings()) > 0 {
		return bawn.Secret{}, failure("keep the address under a name of its own", "the secret %q is bound for guests", name)
	}
	value, err := v.value(ctx, idx, r)
	if err != nil {
		return bawn.Secret{}, err
	}
	v.noteUse(r.ID)
	return value, nil
}
