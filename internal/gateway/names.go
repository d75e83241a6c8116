package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Own is the name of the gateway's own tools, which no server may have.
const Own = "bawn"

// between parts the server's name from its tool's.
const between = "__"

// maxFront is the longest name that a client is shown: together with what
// clients put in front ("mcp__bawn__") no more than the 64 that models take.
const maxFront = 52

// CheckName reports what is wrong with a server's name. No name holds "__" or
// "_", so that the first of them in a tool's name parts the two.
func CheckName(name string) error {
	ok := name != "" && len(name) <= 32 && name[0] != '-' && name[len(name)-1] != '-' && !strings.Contains(name, "--")
	for i := range len(name) {
		c := name[i]
		ok = ok && (c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
	}
	if !ok {
		return fmt.Errorf("the server's name %.64q: want 1 to 32 lower-case letters, digits and single \"-\", such as \"files\"", name)
	}
	return nil
}

// frontName is what clients call a server's tool or prompt. If that can't be
// the name itself, part of a digest makes it unique.
func frontName(server, name string) string {
	plain := server + between + strings.Map(modest, name)
	if plain == server+between+name && len(plain) <= maxFront && !strings.Contains(name, between) && !tailed(name) {
		return plain
	}
	sum := sha256.Sum256([]byte(name))
	tail := "_" + hex.EncodeToString(sum[:4])
	return plain[:min(len(plain), maxFront-len(tail))] + tail
}

// tailed reports whether a name ends like one with a part of a digest, and so could be
// taken for another tool's.
func tailed(name string) bool {
	i := strings.LastIndexByte(name, '_')
	return i >= 0 && len(name)-i-1 == 8 && strings.Trim(name[i+1:], "0123456789abcdef") == ""
}

// modest keeps what every model's interface takes in a name.
func modest(r rune) rune {
	if r == '_' || r == '-' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}
	return '_'
}

// scheme begins the address of a resource as clients see it:
// "bawn:SERVER/ADDRESS".
const scheme = "bawn:"

func frontURI(server, uri string) string { return scheme + server + "/" + uri }

// backURI parts what clients call a resource.
func backURI(front string) (server, uri string, ok bool) {
	rest, ok := strings.CutPrefix(front, scheme)
	if !ok {
		return "", "", false
	}
	server, uri, ok = strings.Cut(rest, "/")
	return server, uri, ok && uri != "" && CheckName(server) == nil
}
