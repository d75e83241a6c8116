// Package trust says where a guest's programs look for the roots they trust, so
// that a session's own CA can be put there. It is data: the code that makes the
// CA is heavy and elsewhere.
package trust

import "slices"

// Names of the files in the directory that Place is given.
const (
	CA        = "ca.pem"      // the session's root alone
	Bundle    = "bundle.pem"  // the system's roots and ours
	JavaStore = "cacerts.p12" // the same for Java, PKCS#12 without a password
)

// A Placement is everything that makes a guest's programs trust the session's
// CA. Files of the system are covered (bound over) where they exist in the
// guest, and nothing outside it changes.
type Placement struct {
	Env     []Variable
	Bundles []string // PEM bundles to be covered by Bundle
	Java    []string // Java key stores to be covered by JavaStore
}

// A Variable is set in the guest's environment.
type Variable struct {
	Name, Value string
	Append      bool // after the existing certificates and a blank line
}

// Place returns the placement of the files in dir, an absolute path in the
// guest.
func Place(dir string) Placement {
	p := Placement{Bundles: slices.Clone(bundles), Java: slices.Clone(javaStores)}
	for _, name := range wholeBundle {
		p.Env = append(p.Env, Variable{Name: name, Value: dir + "/" + Bundle})
	}
	for _, name := range onlyOurs {
		p.Env = append(p.Env, Variable{Name: name, Value: dir + "/" + CA})
	}
	java := "-Djavax.net.ssl.trustStore=" + dir + "/" + JavaStore + " -Djavax.net.ssl.trustStoreType=PKCS12"
	p.Env = append(p.Env, Variable{Name: "JAVA_TOOL_OPTIONS", Value: java, Append: true})
	return p
}

// wholeBundle are variables whose file replaces the system's roots.
var wholeBundle = []string{
	"SSL_CERT_FILE",      // OpenSSL, Go, Ruby, rustls-native-certs, uv
	"CURL_CA_BUNDLE",     // curl, and requests as a second choice
	"REQUESTS_CA_BUNDLE", // Python requests
	"PIP_CERT",           // pip
	"GIT_SSL_CAINFO",     // git
	"CARGO_HTTP_CAINFO",  // cargo
	"AWS_CA_BUNDLE",      // AWS CLI and SDKs
	"NIX_SSL_CERT_FILE",  // Nix and what it builds
	"HTTPLIB2_CA_CERTS",  // httplib2
	"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
	"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
	"PERL_LWP_SSL_CA_FILE",
	"HEX_CACERTS_PATH", // Elixir's package manager
}

// onlyOurs are variables whose file is added to the program's own roots.
var onlyOurs = []string{
	"NODE_EXTRA_CA_CERTS", // Node, npm, Bun
	"DENO_CERT",
}

// bundles are the PEM bundles of distributions; some are links to others.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch, Gentoo
	"/etc/ssl/cert.pem",                                 // Alpine, macOS
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
	"/etc/pki/tls/cert.pem",                             // Fedora, RHEL
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/ca-certificates/extracted/tls-ca-bundle.pem",  // Arch
	"/etc/ssl/ca-bundle.pem",                            // SUSE
	"/var/lib/ca-certificates/ca-bundle.pem",            // SUSE
}

// javaStores are the trust stores of distributions' JDKs.
var javaStores = []string{
	"/etc/ssl/certs/java/cacerts",                     // Debian, Alpine
	"/etc/pki/java/cacerts",                           // Fedora
	"/etc/pki/ca-trust/extracted/java/cacerts",        // Fedora, RHEL
	"/etc/ca-certificates/extracted/java-cacerts.jks", // Arch
	"/var/lib/ca-certificates/java-cacerts",           // SUSE
}
