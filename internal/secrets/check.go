package secrets

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hostname"
)

// checkName accepts letters, digits, dots, dashes and underscores, 1 to 64,
// the first of them a letter or digit.
func checkName(name string) error {
	bad := strings.IndexFunc(name, func(c rune) bool { return !alnum(c) && c != '.' && c != '-' && c != '_' })
	if name == "" || len(name) > 64 || bad >= 0 || !alnum(rune(name[0])) {
		return fmt.Errorf("the secret's name is %q; want 1 to 64 letters, digits, \".\", \"-\" or \"_\", the first a letter or digit", name)
	}
	return nil
}

func alnum(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// checkValue accepts 1 byte to MaxValue and no NUL. It never quotes the value.
func checkValue(value []byte) error {
	switch {
	case len(value) == 0:
		return fmt.Errorf("it is empty; want 1 to %d bytes", MaxValue)
	case len(value) > MaxValue:
		return fmt.Errorf("it has %d bytes; want 1 to %d", len(value), MaxValue)
	case bytes.IndexByte(value, 0) >= 0:
		return fmt.Errorf("it has a NUL byte; want text")
	}
	return nil
}

// singleLine reports whether a value may stand in a header: no control
// characters (RFC 9110 section 5.5).
func singleLine(value []byte) bool {
	return !bytes.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// checkBinding accepts what egress supports, and no binding with two meanings.
func checkBinding(b bawn.Binding) error {
	if err := checkName(b.Secret); err != nil {
		return err
	}
	if b.Placeholder != "" {
		return fmt.Errorf("the binding of %q has a placeholder; those are made for each session", b.Secret)
	}
	if err := checkHost(b.Host); err != nil {
		return fmt.Errorf("the binding of %q: %w", b.Secret, err)
	}
	if err := checkPlace(b); err != nil {
		return fmt.Errorf("the binding of %q: %w", b.Secret, err)
	}
	if err := checkFile(b); err != nil {
		return fmt.Errorf("the binding of %q: %w", b.Secret, err)
	}
	if b.Env != "" && !isVariable(b.Env) {
		return fmt.Errorf("the binding of %q: the variable is %q; want letters, digits and \"_\", the first no digit", b.Secret, b.Env)
	}
	return nil
}

// checkHost accepts a host in normal form, or "*." before one of two labels at
// least, and a port from 1 to 65535 behind a colon.
func checkHost(host string) error {
	name, port, has := splitPort(host)
	if n, err := strconv.ParseUint(port, 10, 16); has && (err != nil || n == 0 || port[0] == '0') {
		return fmt.Errorf("the host is %q; want a port from 1 to 65535", host)
	}
	below, wild := strings.CutPrefix(name, "*.")
	normal, class, err := hostname.Normal(below)
	if err != nil {
		return err
	}
	if strings.Contains(normal, ":") {
		normal = "[" + normal + "]"
	}
	switch {
	case normal != below:
		return fmt.Errorf("the host %q is not in normal form; write %q", host, normal)
	case wild && (class != hostname.Name || !strings.Contains(below, ".")):
		return fmt.Errorf("the host %q is too wide for a secret; want two labels at least behind \"*.\"", host)
	}
	return nil
}

func splitPort(host string) (name, port string, has bool) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") {
		return host, "", false
	}
	return host[:i], host[i+1:], true
}

// checkPlace wants a name where the place has one.
func checkPlace(b bawn.Binding) error {
	switch b.Place {
	case bawn.Header:
		if !isToken(b.Name) || forbiddenHeader[strings.ToLower(b.Name)] {
			return fmt.Errorf("the header is %q; want a field name such as %q, and none that frames the request", b.Name, "x-api-key")
		}
	case bawn.Bearer:
		if b.Name != "" {
			return fmt.Errorf("the place bearer has the name %q; want none", b.Name)
		}
	case bawn.Basic:
		if strings.ContainsAny(b.Name, ":") || !singleLine([]byte(b.Name)) {
			return fmt.Errorf("the user is %q; want none, or one without \":\" and control characters", b.Name)
		}
	case bawn.InQuery:
		if !isToken(b.Name) {
			return fmt.Errorf("the parameter is %q; want a name such as %q", b.Name, "key")
		}
	case bawn.Signed:
		return checkSigned(b)
	default:
		return fmt.Errorf("the place is %q; want header, bearer, basic, query or aws", b.Place)
	}
	return nil
}

// forbiddenHeader are fields that say where a request goes or where it ends.
var forbiddenHeader = map[string]bool{
	"host": true, "connection": true, "content-length": true, "transfer-encoding": true, "te": true, "trailer": true,
	"upgrade": true, "keep-alive": true, "proxy-connection": true, "expect": true, "content-type": true,
}

// isToken is RFC 9110 section 5.6.2.
func isToken(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(c rune) bool {
		return !alnum(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

func isVariable(s string) bool {
	return s != "" && len(s) <= 256 && (s[0] < '0' || s[0] > '9') && !strings.ContainsFunc(s, func(c rune) bool { return !alnum(c) && c != '_' })
}

// checkFile wants a clean path, absolute or below "~", with a format we write.
func checkFile(b bawn.Binding) error {
	if b.File == "" {
		if b.Format != "" {
			return fmt.Errorf("the format %q has no file", b.Format)
		}
		return nil
	}
	rest, home := strings.CutPrefix(b.File, "~/")
	if !home && !path.IsAbs(b.File) || path.Clean("/"+rest) != "/"+strings.TrimPrefix(rest, "/") || rest == "" || rest == "/" || !singleLine([]byte(b.File)) {
		return fmt.Errorf("the file is %q; want a clean path that begins with \"/\" or \"~/\"", b.File)
	}
	return checkFormat(b)
}
