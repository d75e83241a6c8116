package main

import (
	"strings"
)

// Files in the world's directory.
const (
	eventsName     = "events"     // requests that the outside has seen
	registriesName = "registries" // what registries serve, by host
)

// forge is where projects are pushed to.
const forge = "github.com"

// at puts a name together: host, and what a pattern of the default profile leaves open.
func at(host, pattern string) string { return host + strings.TrimPrefix(pattern, "*") }

// Hosts of registries.
var (
	npm     = at("registry", "*.npmjs.org")
	pypi    = at("pypi", ".org")
	pyFiles = at("files", "*.pythonhosted.org")
	goProxy = at("proxy", "*.golang.org")
	goSums  = at("sum", "*.golang.org")
)
