package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sigv4"
)

// Default host, file and format of an access key's binding.
const (
	AWSHost   = "*.amazonaws.com"
	AWSFile   = "~/.aws/credentials"
	AWSFormat = "aws"
	awsIDVar  = "AWS_ACCESS_KEY_ID"
)

// awsVars are the variables in which clients look for the parts of a key.
var awsVars = []string{awsIDVar, "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}

// awsKeys are the settings of a profile that hold the parts of a key, the
// last one by an old name.
var awsKeys = []string{"aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_security_token"}

// awsSettings are the settings of a profile that are neither credentials nor
// lead to any.
var awsSettings = []string{
	"region", "output", "role_arn", "source_profile", "role_session_name", "duration_seconds", "mfa_serial", "cli_pager", "cli_timestamp_format",
	"max_attempts", "retry_mode", "defaults_mode", "endpoint_url", "use_fips_endpoint", "use_dualstack_endpoint", "ca_bundle", "sts_regional_endpoints",
	"request_checksum_calculation", "response_checksum_validation",
}

var (
	awsProfileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`) })
	awsScope       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\*|[A-Za-z0-9._-]+)/(\*|[A-Za-z0-9._-]+)$`) })
	// awsJSON are the names in what "aws sts" and a credential_process print.
	awsJSON = []string{"AccessKeyId", "SecretAccessKey", "SessionToken"}
)

// ReadKey returns an access key as the vault keeps it. The text is one profile
// of a credentials file, lines of NAME=VALUE as variables have them, JSON as
// "aws sts" or a credential_process prints it, or ID:SECRET[:TOKEN]. The
// caller zeroes text and the result. An error quotes nothing of the text.
func ReadKey(text []byte) ([]byte, error) {
	text = bytes.TrimSpace(text)
	var parts [][]byte
	switch {
	case bytes.HasPrefix(text, []byte("{")):
		parts = keyFromJSON(text)
	case bytes.ContainsAny(text, "\n") || bytes.HasPrefix(text, []byte("[")):
		parts = keyFromLines(text)
	default:
		parts = bytes.SplitN(text, []byte(":"), 3)
	}
	return joinKey(parts)
}

func joinKey(parts [][]byte) ([]byte, error) {
	for len(parts) > 2 && len(parts[len(parts)-1]) == 0 {
		parts = parts[:len(parts)-1]
	}
	key := bytes.Join(parts, []byte(":"))
	if _, err := sigv4.ParseCredential(key); err != nil {
		clear(key)
		return nil, failure("give one profile of ~/.aws/credentials, what \"aws configure export-credentials\" prints, or ID:SECRET[:TOKEN]", "the text is no access key of AWS, or more than one")
	}
	return key, nil
}

// keyFromJSON leaves the values where they are, as bytes that can be zeroed.
func keyFromJSON(text []byte) [][]byte {
	var top map[string]json.RawMessage
	if json.Unmarshal(text, &top) != nil {
		return nil
	}
	if inner, ok := top["Credentials"]; ok {
		top = nil
		if json.Unmarshal(inner, &top) != nil {
			return nil
		}
	}
	parts := make([][]byte, len(awsJSON))
	for i, name := range awsJSON {
		if raw := top[name]; !bytes.Equal(raw, []byte("null")) {
			parts[i] = bytes.ReplaceAll(bytes.Trim(raw, `"`), []byte(`\/`), []byte("/"))
		}
	}
	return parts
}

// keyFromLines wants each part once, so a text with two profiles is refused.
func keyFromLines(text []byte) [][]byte {
	parts := make([][]byte, len(awsVars))
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("export ")), []byte("="))
		i := slices.Index(awsKeys, strings.ToLower(string(bytes.TrimSpace(name))))
		if i < 0 {
			continue
		}
		if i = min(i, 2); parts[i] != nil {
			return nil
		}
		parts[i] = bytes.Trim(bytes.TrimSpace(value), `"'`)
	}
	return parts
}

// AskKey reads the parts of an access key from a terminal without showing them.
func AskKey(tty *os.File, name string) ([]byte, error) {
	parts, err := ask(tty, fmt.Sprintf("Access key id of %s (not shown): ", name), "Secret access key (not shown): ", "Session token (not shown; empty if there is none): ")
	for _, p := range parts {
		defer clear(p)
	}
	if err != nil {
		return nil, err
	}
	return joinKey(parts)
}

// imitateKey makes a placeholder of the same parts: an id of the same kind, a
// secret and a token of the same length. Punctuation is that of the secret: in
// a token there are long rows of slashes, which would be told from nothing.
func imitateKey(c sigv4.Credential, punctuation bool) (string, error) {
	kind := 0
	if bytes.HasPrefix(c.ID, []byte("AKIA")) || bytes.HasPrefix(c.ID, []byte("ASIA")) {
		kind = 4
	}
	set, _ := alphabet(c.ID[kind:])
	if kind > 0 {
		set = upper + "234567" // they are base32
	}
	id := append([]byte(nil), c.ID[:kind]...)
	for len(id) < len(c.ID) {
		r, err := pick(set)
		if err != nil {
			return "", err
		}
		id = append(id, r)
	}
	out := string(id)
	for i, part := range c.Parts()[1:] {
		text, err := imitate(part, punctuation && i == 0)
		if err != nil {
			return "", err
		}
		out += ":" + text
	}
	if _, err := sigv4.ParseCredential([]byte(out)); err != nil {
		return "", fmt.Errorf("the placeholder: %w", err)
	}
	return out, nil
}

// sharesPart reports whether a placeholder has a piece of a part of the key.
func sharesPart(placeholder string, c sigv4.Credential) bool {
	private := [][]byte{c.ID[4:]}
	for _, p := range append(private, c.Parts()[1:]...) {
		if sharesPiece(placeholder, p, fixedAt(p)) {
			return true
		}
	}
	return false
}

// parts returns the parts of a placeholder that a file has one by one, or the whole
// placeholder.
func parts(b bawn.Binding) []string {
	c, err := sigv4.ParseCredential([]byte(b.Placeholder))
	if b.Place != bawn.Signed || err != nil {
		return []string{b.Placeholder}
	}
	var out []string
	for _, p := range c.Parts() {
		out = append(out, string(p))
	}
	return out
}

// variables returns the variables of a binding with their values for the guest.
func variables(b bawn.Binding) []string {
	if b.Place != bawn.Signed {
		return []string{b.Env + "=" + b.Placeholder}
	}
	var out []string
	for i, p := range parts(b) {
		out = append(out, awsVars[i]+"="+p)
	}
	return out
}

// checkSigned wants the region and the service, or none, and of variables the
// one that clients begin with.
func checkSigned(b bawn.Binding) error {
	if b.Name != "" && !awsScope().MatchString(b.Name) {
		return fmt.Errorf("the scope is %q; want REGION/SERVICE, with \"*\" for any", b.Name)
	}
	if b.Env != "" && b.Env != awsIDVar {
		return fmt.Errorf("the variable is %q; want %q, and the others follow", b.Env, awsIDVar)
	}
	return nil
}

// needsKey refuses to have signed with what is no access key.
func needsKey(r *record, value []byte) error {
	if !slices.ContainsFunc(r.Bindings, func(b binding) bool { return b.Place == bawn.Signed }) {
		return nil
	}
	if _, err := sigv4.ParseCredential(value); err != nil {
		return failure("set it again: bawn secret set "+r.Name+" --aws", "%q is bound to requests that AWS clients sign, and its value is no access key", r.Name)
	}
	return nil
}

// A profile is one section of ~/.aws/credentials.
type profile struct {
	name     string
	settings [][2]string
	nested   int // lines below a setting
}

func (p profile) get(key string) string {
	for _, s := range p.settings {
		if s[0] == key {
			return s[1]
		}
	}
	return ""
}

// awsProfiles reads ~/.aws/credentials as the clients' guide describes it
// ("Configuration and credential file settings"), and refuses what they read
// differently.
func awsProfiles(real []byte) ([]profile, error) {
	if err := checkText(real); err != nil {
		return nil, err
	}
	var out []profile
	for line := range strings.SplitSeq(strings.ReplaceAll(string(real), "\r", "\n"), "\n") {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#' || text[0] == ';':
		case text[0] == '[' && strings.HasSuffix(text, "]"):
			name := strings.TrimSpace(text[1 : len(text)-1])
			if slices.ContainsFunc(out, func(p profile) bool { return p.name == name }) {
				return nil, errors.New("it has a profile twice")
			}
			out = append(out, profile{name: name})
		case len(out) == 0:
			return nil, errors.New("it does not begin with a profile")
		case line[0] == ' ' || line[0] == '\t':
			out[len(out)-1].nested++
		default:
			key, value, ok := strings.Cut(text, "=")
			key = strings.ToLower(strings.TrimSpace(key))
			p := &out[len(out)-1]
			if !ok || strings.ContainsAny(key, ": \t\"'") || p.get(key) != "" {
				return nil, errors.New("a line in it is not NAME = VALUE, or there twice")
			}
			p.settings = append(p.settings, [2]string{key, strings.TrimSpace(value)})
		}
	}
	return out, nil
}
