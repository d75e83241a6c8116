package egressd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/dotenv"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/secrets"
)

// everySecret stands for all that are bound.
const everySecret = "*"

// openVault reads the bindings of the secrets that the session may use. The
// guest gets placeholders; the values stay here.
func (s *session) openVault(ctx context.Context) error {
	if len(s.config.Egress.Secrets) == 0 {
		return nil
	}
	v, err := s.open()
	if err != nil {
		return err
	}
	s.vault = v
	names, err := wanted(v, s.config.Egress.Secrets)
	if err != nil {
		return err
	}
	if s.bindings, err = v.Bindings(ctx, names); err != nil {
		return err
	}
	if s.bindings, err = ofZone(s.bindings, s.config.Zone, s.config.Models); err != nil {
		return err
	}
	if err := s.bindMasks(ctx); err != nil {
		return err
	}
	for _, b := range s.bindings {
		h, err := netrule.ParseHost(b.Host)
		if err != nil {
			return err
		}
		s.bound = append(s.bound, h)
	}
	return nil
}

// bindMasks gives a placeholder in a masked file of the workspace the bindings of the
// vault's, where the file holds the value of a lent secret.
func (s *session) bindMasks(ctx context.Context) error {
	if len(s.config.Masks) == 0 {
		return nil
	}
	stands := map[string]string{}
	for _, m := range s.config.Masks {
		stands[m.Name] = m.Placeholder
	}
	kept := dotenv.Workspace(s.config.Workspace)
	for _, b := range slices.Clone(s.bindings) {
		value, err := s.vault.Get(ctx, b.Secret)
		if err != nil {
			return err
		}
		for _, k := range kept {
			if stand := stands[k.Name]; stand != "" && b.Place != bawn.Signed && bytes.Equal(k.Value, value.Reveal()) {
				b.Placeholder, b.File, b.Env = stand, "", ""
				s.bindings = append(s.bindings, b)
			}
		}
	}
	return nil
}

// open opens the vault of the user.
func (s *session) open() (*secrets.Vault, error) {
	if err := secrets.Harden(); err != nil {
		return nil, err
	}
	o, err := secrets.Standard(ownDescriptor(s.env), "")
	if err != nil {
		return nil, err
	}
	if !s.config.Prompt {
		o.Passphrase = secrets.Unattended
	}
	return secrets.Open(o)
}

// errNoVault says that a secret was to be lent, and there is no vault.
var errNoVault = errors.New("the vault can't be opened")

// ownDescriptor takes out the number of a descriptor that is another process's: here it may
// be the one over which bawn run speaks.
func ownDescriptor(env environ) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, egress.PassphraseFD+"=") && v != fmt.Sprintf("%s=%d", egress.PassphraseFD, egress.PassphraseAt)
	})
}

// wanted are the names that the session may use: the named ones, or all bound
// ones.
func wanted(v *secrets.Vault, names []string) ([]string, error) {
	if !slices.Contains(names, everySecret) {
		return names, nil
	}
	all, err := v.List()
	if err != nil {
		return nil, err
	}
	var bound []string
	for _, e := range all {
		if len(e.Bindings) > 0 {
			bound = append(bound, e.Name)
		}
	}
	return bound, nil
}

// ofZone are the bindings of a split session's zone: those to a model's host for
// the agent, and only the others for its commands. A host that is a model's in
// part is one: a doubtful binding is the agent's, which reaches nothing else.
func ofZone(all []bawn.Binding, zone string, models []string) ([]bawn.Binding, error) {
	if zone == "" {
		return all, nil
	}
	var hosts []netrule.Host
	for _, m := range models {
		h, err := netrule.ParseHost(m)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	var own []bawn.Binding
	for _, b := range all {
		at, err := netrule.ParseHost(b.Host)
		if err != nil {
			return nil, err
		}
		model := slices.ContainsFunc(hosts, at.Overlaps)
		if model == (zone == egress.Reasoning) {
			own = append(own, b)
		}
	}
	return own, nil
}
