package dockerapi

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		method, uri string
		path        string // of the endpoint; "" if no endpoint has this path
		names       string
		rule        string
	}{
		{"GET", "/_ping", "_ping", "", ""},
		{"GET", "/v1.41/_ping", "_ping", "", ""},
		{"POST", "/v1.41/containers/create?name=web", "containers/create", "", ""},
		{"POST", "/containers/create", "containers/create", "", ""},
		{"GET", "/v1.47/containers/web/json", "containers/{id}/json", "web", ""},
		{"GET", "/containers/json", "containers/json", "", ""},
		{"GET", "/v1.41/images/registry.example.org:5000/team/app:1/json", "images/{image}/json", "registry.example.org:5000/team/app:1", ""},
		{"GET", "/v1.32/images/team%2Fapp%3A1/json", "images/{image}/json", "team/app:1", ""},
		{"GET", "/images/a@sha256:0000000000000000000000000000000000000000000000000000000000000000/json", "images/{image}/json", "a@sha256:0000000000000000000000000000000000000000000000000000000000000000", ""},
		{"DELETE", "/v1.41/containers/web?v=1&force=true&link=0", "containers/{id}", "web", ""},
		{"GET", "/images/json", "images/json", "", ""},
		{"POST", "/v1.41/build?t=x&dockerfile=Dockerfile", "build", "", ""},

		{"GET", "/containers/web/json?size=1&future=1&future=2", "containers/{id}/json", "web", ""},
		{"DELETE", "/containers/web?v=False&link=False&force=False", "containers/{id}", "web", ""},
		{"GET", "/containers/web/top?ps_args=aux", "containers/{id}/top", "web", RuleQuery},
		{"DELETE", "/containers/web?link=1", "containers/{id}", "web", RuleQuery},
		{"DELETE", "/containers/web?link=&link=1", "containers/{id}", "web", RuleQuery},
		{"DELETE", "/containers/web?v=1&v=0", "containers/{id}", "web", RuleQuery},
		{"DELETE", "/containers/web?v=1;force=1", "containers/{id}", "web", RuleQuery},
		{"GET", "/containers/json?filters=%7B%22label%22%3A1%7D", "containers/json", "", RuleBody},

		{"GET", "/", "", "", RuleEndpoint},
		{"GET", "", "", "", RuleEndpoint},
		{"GET", "*", "", "", RuleEndpoint},
		{"GET", "http://engine/_ping", "", "", RuleEndpoint},
		{"get", "/_ping", "", "", RuleEndpoint},
		{"GET", "//_ping", "", "", RuleEndpoint},
		{"GET", "/_ping/", "", "", RuleEndpoint},
		{"GET", "/v1.41//_ping", "", "", RuleEndpoint},
		{"GET", "/v1.41", "", "", RuleEndpoint},
		{"GET", "/v2.0/_ping", "", "", RuleEndpoint},
		{"GET", "/v1.041/v1.41/_ping", "", "", RuleEndpoint},
		{"GET", "/v1.41/v1.41/_ping", "", "", RuleEndpoint},
		{"POST", "/containers/web/../create", "", "", RuleEndpoint},
		{"POST", "/containers/web/%2e%2e/create", "", "", RuleEndpoint},
		{"POST", "/containers/web%2F..%2F..%2Fbuild", "", "", RuleEndpoint},
		{"POST", "/containers/web%2fstart%00", "", "", RuleEndpoint},
		{"POST", "/containers/web/start%20", "", "", RuleEndpoint},
		{"POST", "/containers/web/start#", "", "", RuleEndpoint},
		{"POST", `/containers\web\start`, "", "", RuleEndpoint},
		{"POST", "/containers/web/%73tart", "", "", RuleEndpoint},
		{"POST", "/containers/web/start;x", "", "", RuleEndpoint},
		{"POST", "/Containers/create", "", "", RuleEndpoint},
		{"PUT", "/containers/create", "", "", RuleEndpoint},
		{"GET", "/containers/web/export", "", "", RuleEndpoint},
		{"POST", "/swarm/init", "", "", RuleEndpoint},
		{"POST", "/plugins/pull?remote=x", "", "", RuleEndpoint},
		{"GET", "/secrets", "", "", RuleEndpoint},
		{"GET", "/distribution/alpine/json", "", "", RuleEndpoint},
		{"GET", "/system/df", "", "", RuleEndpoint},
		{"POST", "/images/a/push", "", "", RuleEndpoint},
		{"POST", "/images/a/tag?repo=b", "", "", RuleEndpoint},
		{"DELETE", "/images/a", "images/{image}", "a", ""},
		{"GET", "/images/get?names=a", "", "", RuleEndpoint},
		{"POST", "/grpc", "grpc", "", ""}, // which refuses always
		{"CONNECT", "example.org:443", "", "", RuleEndpoint},
		{"GET", "/containers/" + strings.Repeat("a", maxURI) + "/json", "", "", RuleEndpoint},
	} {
		t.Run(tt.method+" "+tt.uri[:min(len(tt.uri), 60)], func(t *testing.T) {
			c, err := parse(endpoints, tt.method, tt.uri)
			if got := ruleOf(err); got != tt.rule {
				t.Errorf("rule %q (%v); want %q", got, err, tt.rule)
			}
			if c == nil {
				if tt.path != "" {
					t.Errorf("no endpoint; want %q", tt.path)
				}
				return
			}
			if c.endpoint.path != tt.path || strings.Join(c.names, " ") != tt.names {
				t.Errorf("got %q %q; want %q %q", c.endpoint.path, c.names, tt.path, tt.names)
			}
		})
	}
}

// What is understood is an endpoint of the list, and its names could not be
// read as anything else.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"/_ping", "/v1.41/images/a%2Fb:c/json", "/containers/../x", "/containers/json?filters={}", "/v1.41/containers/a/json?x=%zz", "//", "/a?b=c&b=d"} {
		f.Add("GET", seed)
		f.Add("POST", seed)
	}
	f.Fuzz(func(t *testing.T, method, uri string) {
		c, err := parse(endpoints, method, uri)
		if err != nil {
			return
		}
		for _, n := range c.names {
			for s := range strings.SplitSeq(n, "/") {
				if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "%?#\\ ;") {
					t.Errorf("%q has the name %q", uri, n)
				}
			}
			if strings.Contains(n, "/") && !strings.Contains(c.endpoint.path, "{image}") {
				t.Errorf("%q has the name %q", uri, n)
			}
		}
		for name := range c.query {
			if !oneOf(name, strings.Fields(c.endpoint.query)...) {
				t.Errorf("%q has the parameter %q", uri, name)
			}
		}
	})
}
