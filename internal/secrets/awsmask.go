package secrets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// profileOf is the profile in which a binding's file has the key.
func profileOf(b bawn.Binding) string {
	if _, name, ok := strings.Cut(b.Format, ":"); ok {
		return name
	}
	return "default"
}

// maskAWS keeps the profiles that are bound, and those that only name a role
// for one that is.
func maskAWS(real []byte, bs []bawn.Binding) ([]byte, []string, error) {
	found, err := awsProfiles(real)
	if err != nil {
		return nil, nil, err
	}
	keys := map[string]bawn.Binding{}
	for _, b := range bs {
		name := profileOf(b)
		if other, has := keys[name]; has && other.Placeholder != b.Placeholder {
			return nil, nil, errors.New("a profile holds one key")
		}
		keys[name] = b
		if !slices.ContainsFunc(found, func(p profile) bool { return p.name == name }) {
			found = append(found, profile{name: name})
		}
	}
	var out strings.Builder
	lost := 0
	for _, p := range found {
		b, bound := keys[p.name]
		_, role := keys[p.get("source_profile")]
		if !bound && (!role || p.get("role_arn") == "" || !awsProfileName().MatchString(p.name)) {
			lost++
			continue
		}
		fmt.Fprintf(&out, "[%s]\n", p.name)
		if bound {
			for i, part := range parts(b) {
				fmt.Fprintf(&out, "%s = %s\n", awsKeys[i], part)
			}
		}
		lost += p.nested
		for _, s := range p.settings {
			switch {
			case slices.Contains(awsSettings, s[0]) && !hasUserinfo(s[1]):
				fmt.Fprintf(&out, "%s = %s\n", s[0], s[1])
			case !bound || !slices.Contains(awsKeys, s[0]):
				lost++
			}
		}
	}
	return []byte(out.String()), dropped(lost, "profiles or settings"), nil
}

// awsLogins are the keys of the profiles: the user is the profile's name.
func awsLogins(real []byte) ([]login, error) {
	found, err := awsProfiles(real)
	var out []login
	for _, p := range found {
		key, err := joinKey([][]byte{[]byte(p.get(awsKeys[0])), []byte(p.get(awsKeys[1])), []byte(p.get(awsKeys[2]) + p.get(awsKeys[3]))})
		if err != nil || !awsProfileName().MatchString(p.name) {
			continue
		}
		host := AWSHost
		if strings.HasPrefix(p.get("region"), "cn-") {
			host += ".cn"
		}
		out = append(out, login{host, p.name, string(key), bawn.Signed})
		clear(key)
	}
	return out, err
}

// awsBinding is where the key of a profile goes.
func awsBinding(l login, file string) bawn.Binding {
	b := bawn.Binding{Host: l.host, Place: bawn.Signed, File: file, Format: AWSFormat}
	if l.user != "default" {
		b.Format += ":" + l.user
	}
	return b
}
