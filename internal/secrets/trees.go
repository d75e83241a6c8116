package secrets

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bawn-dev/bawn"
)

// readYAML decodes one document. It names no content in errors.
func readYAML(real []byte, into any) error {
	if err := checkText(real); err != nil {
		return err
	}
	if err := yaml.Unmarshal(real, into); err != nil {
		return errors.New("it is no YAML of the expected form")
	}
	return nil
}

// ghHosts is hosts.yml of the GitHub client: by host, with the fields that are
// kept. Tokens are read for import and never written back.
type ghHosts map[string]ghHost

type ghHost struct {
	User     string             `yaml:"user,omitempty"`
	Token    string             `yaml:"oauth_token,omitempty"`
	Protocol string             `yaml:"git_protocol,omitempty"`
	Users    map[string]ghToken `yaml:"users,omitempty"`
}

type ghToken struct {
	Token string `yaml:"oauth_token,omitempty"`
}

// ghName is the name under which the client keeps the host of an API.
func ghName(host string) string {
	name, _, _ := splitPort(host)
	return strings.TrimPrefix(name, "api.")
}

func maskGH(real []byte, bs []bawn.Binding) ([]byte, []string, error) {
	var have ghHosts
	if err := readYAML(real, &have); err != nil {
		return nil, nil, err
	}
	out := ghHosts{}
	for _, b := range bs {
		if isWild(b.Host) {
			return nil, nil, failure("bind it to api.github.com", "the host %q is a pattern; want the very host", b.Host)
		}
		name := ghName(b.Host)
		h := ghHost{User: have[name].User, Token: b.Placeholder, Protocol: have[name].Protocol}
		if b.Place == bawn.Basic && b.Name != "" && h.User == "" {
			h.User = b.Name
		}
		if h.User != "" {
			h.Users = map[string]ghToken{h.User: {b.Placeholder}}
		}
		out[name] = h
	}
	lost := 0
	for name := range have {
		if _, ok := out[name]; !ok {
			lost++
		}
	}
	content, err := yaml.Marshal(out)
	return content, dropped(lost, "hosts"), err
}

func ghLogins(real []byte) ([]login, error) {
	var have ghHosts
	if err := readYAML(real, &have); err != nil {
		return nil, err
	}
	var out []login
	for _, name := range slices.Sorted(maps.Keys(have)) {
		h := have[name]
		if h.Token == "" {
			h.Token = h.Users[h.User].Token
		}
		if h.Token == "" { // in the keyring
			continue
		}
		out = append(out, login{name, h.User, h.Token, bawn.Bearer})
	}
	return out, nil
}

// kubeConfig has the fields of a kubeconfig that are kept, and the token.
// Certificates of clients, passwords, and programs that fetch credentials are
// not among them.
type kubeConfig struct {
	APIVersion string        `yaml:"apiVersion"`
	Kind       string        `yaml:"kind"`
	Clusters   []kubeCluster `yaml:"clusters"`
	Contexts   []kubeContext `yaml:"contexts"`
	Users      []kubeUser    `yaml:"users"`
	Current    string        `yaml:"current-context"`
}

type kubeCluster struct {
	Name    string `yaml:"name"`
	Cluster struct {
		Server     string `yaml:"server"`
		Authority  string `yaml:"certificate-authority-data,omitempty"`
		AuthorityF string `yaml:"certificate-authority,omitempty"`
		ServerName string `yaml:"tls-server-name,omitempty"`
	} `yaml:"cluster"`
}

type kubeContext struct {
	Name    string `yaml:"name"`
	Context struct {
		Cluster   string `yaml:"cluster"`
		User      string `yaml:"user"`
		Namespace string `yaml:"namespace,omitempty"`
	} `yaml:"context"`
}

type kubeUser struct {
	Name string `yaml:"name"`
	User struct {
		Token string `yaml:"token,omitempty"`
	} `yaml:"user"`
}

// hosts returns the hosts of the servers that each user is used with.
func (k kubeConfig) hosts() map[string][]string {
	servers := map[string]string{}
	for _, c := range k.Clusters {
		if u, err := url.Parse(c.Cluster.Server); err == nil && u.Scheme == "https" {
			servers[c.Name] = u.Host
		}
	}
	out := map[string][]string{}
	for _, c := range k.Contexts {
		if host := servers[c.Context.Cluster]; host != "" {
			out[c.Context.User] = append(out[c.Context.User], host)
		}
	}
	return out
}

func maskKube(real []byte, bs []bawn.Binding) ([]byte, []string, error) {
	var k kubeConfig
	if err := readYAML(real, &k); err != nil {
		return nil, nil, err
	}
	for _, c := range k.Clusters {
		if hasUserinfo(c.Cluster.Server) {
			return nil, nil, errors.New("the address of a server in it has a password")
		}
	}
	hosts, lost := k.hosts(), 0
	done := map[bawn.Binding]bool{}
	for i := range k.Users {
		u := &k.Users[i]
		u.User.Token = ""
		for _, host := range hosts[u.Name] {
			if b, ok := bindingOf(bs, host, bawn.Bearer); ok && u.User.Token == "" {
				u.User.Token, done[b] = b.Placeholder, true
			}
		}
		if u.User.Token == "" {
			lost++
		}
	}
	for _, b := range bs {
		if !done[b] {
			if err := k.add(b); err != nil {
				return nil, nil, err
			}
		}
	}
	k.APIVersion, k.Kind = "v1", "Config"
	content, err := yaml.Marshal(k)
	return content, dropped(lost, "users' credentials"), err
}

// add makes a context for a binding that the file does not mention.
func (k *kubeConfig) add(b bawn.Binding) error {
	host, err := concrete(b, "")
	if err != nil {
		return err
	}
	var c kubeCluster
	var x kubeContext
	var u kubeUser
	c.Name, x.Name, u.Name = b.Secret, b.Secret, b.Secret
	c.Cluster.Server = "https://" + host
	x.Context.Cluster, x.Context.User = b.Secret, b.Secret
	u.User.Token = b.Placeholder
	k.Clusters, k.Contexts, k.Users = append(k.Clusters, c), append(k.Contexts, x), append(k.Users, u)
	if k.Current == "" {
		k.Current = b.Secret
	}
	return nil
}

func kubeLogins(real []byte) ([]login, error) {
	var k kubeConfig
	if err := readYAML(real, &k); err != nil {
		return nil, err
	}
	hosts := k.hosts()
	var out []login
	for _, u := range k.Users {
		for _, host := range slices.Compact(slices.Sorted(slices.Values(hosts[u.Name]))) {
			if u.User.Token != "" {
				out = append(out, login{host, u.Name, u.User.Token, bawn.Bearer})
			}
		}
	}
	return out, nil
}

// dockerKept are the settings of docker's config.json that are kept: looks,
// and the names of directories and contexts.
var dockerKept = []string{"psFormat", "imagesFormat", "statsFormat", "detachKeys", "currentContext", "cliPluginsExtraDirs", "experimental"}

type dockerAuth struct {
	Auth string `json:"auth,omitempty"`
}

func readDocker(real []byte) (settings map[string]json.RawMessage, auths map[string]dockerAuth, err error) {
	if len(real) == 0 {
		return nil, nil, nil
	}
	if json.Unmarshal(real, &settings) != nil || settings["auths"] != nil && json.Unmarshal(settings["auths"], &auths) != nil {
		return nil, nil, errors.New("it is no JSON of the expected form")
	}
	return settings, auths, nil
}

// dockerHost is the host of a key of "auths": a URL, or a host and a path.
func dockerHost(key string) string {
	if _, rest, ok := strings.Cut(key, "://"); ok {
		key = rest
	}
	host, _, _ := strings.Cut(key, "/")
	return strings.ToLower(host)
}

func maskDocker(real []byte, bs []bawn.Binding) ([]byte, []string, error) {
	settings, have, err := readDocker(real)
	if err != nil {
		return nil, nil, err
	}
	out, auths := map[string]any{}, map[string]dockerAuth{}
	for _, key := range dockerKept {
		if v := settings[key]; v != nil {
			out[key] = v
		}
	}
	lost, done := 0, map[bawn.Binding]bool{}
	for key, auth := range have {
		b, ok := bindingOf(bs, dockerHost(key), bawn.Basic)
		if !ok {
			lost++
			continue
		}
		user, _, _ := basicPair(auth.Auth)
		auths[key], done[b] = dockerAuth{pairOf(b, user)}, true
	}
	for _, b := range bs {
		if done[b] {
			continue
		}
		key, err := dockerKey(b)
		if err != nil {
			return nil, nil, err
		}
		auths[key] = dockerAuth{pairOf(b, "")}
	}
	out["auths"] = auths
	content, err := json.MarshalIndent(out, "", "\t")
	return append(content, '\n'), dropped(lost, "logins"), err
}

func pairOf(b bawn.Binding, user string) string {
	return base64.StdEncoding.EncodeToString([]byte(userOf(b, user) + ":" + b.Placeholder))
}

// dockerKey is the key of a binding that the file does not mention. The client's own
// registry has the address of its first version.
func dockerKey(b bawn.Binding) (string, error) {
	if strings.HasSuffix(b.Host, ".docker.io") {
		return fmt.Sprintf("https://index%s/v1/", ".docker.io"), nil
	}
	return concrete(b, "")
}

func dockerLogins(real []byte) ([]login, error) {
	_, auths, err := readDocker(real)
	var out []login
	for _, key := range slices.Sorted(maps.Keys(auths)) {
		if user, pass, ok := basicPair(auths[key].Auth); ok && pass != "" {
			out = append(out, login{dockerHost(key), user, strings.TrimRight(pass, "\x00"), bawn.Basic})
		}
	}
	return out, err
}
