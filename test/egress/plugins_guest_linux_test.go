package egress_test

import (
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// tinyNode is a tool server that tries, when it starts, whether it reaches the
// registry that it came from, and notes that in its own directory.
const tinyNode = `#!/usr/bin/env node
const https = require('https'), fs = require('fs'), os = require('os');
const note = text => fs.appendFileSync(os.homedir() + '/noted', text + '\n');
const serve = () => require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const m = JSON.parse(line), answer = result => console.log(JSON.stringify({ jsonrpc: '2.0', id: m.id, result }));
  if (m.method === 'initialize') answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'tiny', version: '1' } });
  if (m.method === 'tools/list') answer({ tools: [{ name: 'hello', description: 'says hello', inputSchema: { type: 'object' } }] });
  if (m.method === 'tools/call') answer({ content: [{ type: 'text', text: 'tiny works' }] });
  if (m.method === 'server/discover') console.log(JSON.stringify({ jsonrpc: '2.0', id: m.id, error: { code: -32601, message: 'not known' } }));
});
https.get('REGISTRY/tiny-server', r => { r.resume(); note('reached'); serve(); }).on('error', () => { note('refused'); serve(); });
`

// tinyGo is the same in Go, but for the registry. It imports as little as it can:
// "go run" compiles all of that anew.
const tinyGo = `package main

import "syscall"

func main() {
	var line []byte
	for b := make([]byte, 1); ; {
		if n, err := syscall.Read(0, b); n <= 0 || err != nil {
			return
		}
		if b[0] != '\n' {
			line = append(line, b[0])
			continue
		}
		answer(string(line))
		line = nil
	}
}

func answer(line string) {
	at := index(line, "\"id\":")
	if at < 0 {
		return
	}
	id := line[at+len("\"id\":"):]
	end := 0
	for end < len(id) && id[end] != ',' && id[end] != '}' {
		end++
	}
	result := ""
	switch {
	case index(line, "\"initialize\"") >= 0:
		result = ` + "`" + `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}` + "`" + `
	case index(line, "\"tools/list\"") >= 0:
		result = ` + "`" + `{"tools":[{"name":"hello","description":"says hello","inputSchema":{"type":"object"}}]}` + "`" + `
	default:
		result = ` + "`" + `{"content":[{"type":"text","text":"tiny works"}]}` + "`" + `
	}
	_, _ = syscall.Write(1, []byte("{\"jsonrpc\":\"2.0\",\"id\":"+id[:end]+",\"result\":"+result+"}\n"))
}

func index(s, part string) int {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return i
		}
	}
	return -1
}
`

// call is a client of the gateway: it calls the one tool until that answers.
const call = `cat > in <<'END'
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
END
: > out
(cat in; for i in $(seq 2 50); do
	grep -q "tiny works" out && break
	echo '{"jsonrpc":"2.0","id":'$i',"method":"tools/call","params":{"name":"tiny__hello","arguments":{}}}'
	sleep 1
done) | BAWN mcp > out
cat out`

// pinPatience is for what is fetched and compiled at the first start.
const pinPatience = 4 * time.Minute

// installed adds, pins and calls a plugin that a package manager fetches.
func (d *account) installed(t *testing.T, manifest string) {
	t.Helper()
	bawn := d.bawn(t)
	put(t, manifest+"tools.allow = [\"*\"]\n", d.home, ".config/bawn/plugins/tiny.toml")
	if r := d.within(t, pinPatience, bawn, "plugin", "pin", "tiny", "--yes"); r.code != 0 {
		t.Fatalf("the first start ends with %d after %v: %s%s", r.code, r.took, r.out, r.err)
	}
	m := d.now(t)
	r := d.sh(t, strings.ReplaceAll(call, "BAWN", bawn))
	if !strings.Contains(r.out, "tiny works") {
		t.Errorf("once it was fetched: %s%s", r.out, r.err)
	}
	if seen := d.since(t, m); len(seen) > 0 {
		t.Errorf("once it was fetched %v is outside", seen)
	}
}

// TestNpxPlugin: npx fetches a plugin from its registry when it is pinned, with
// names in the package that are protected elsewhere; from then on it runs without
// a registry, which is out of its reach.
func TestNpxPlugin(t *testing.T) {
	testenv.Whole(t) // TestNpm is the representative
	d := newAccount(t, "node")
	host := at("registry", "*.npmjs.org")
	url := "https://" + host
	tarball := packed(t, false, "package/package.json", `{"name":"tiny-server","version":"1.0.0","bin":{"tiny-server":"server.js"}}`,
		"package/server.js", strings.ReplaceAll(tinyNode, "REGISTRY", url), "package/.vscode/settings.json", "{}", "package/.agents/skill.md", "x")
	sum := sha512.Sum512([]byte(tarball))
	d.publish(t, host, "files/tiny-server-1.0.0.tgz", tarball)
	d.publish(t, host, "tiny-server", fmt.Sprintf(`{"name":"tiny-server","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"tiny-server","version":"1.0.0","bin":{"tiny-server":"server.js"},`+
		`"dist":{"tarball":"%s/files/tiny-server-1.0.0.tgz","integrity":"sha512-%s"}}}}`, url, base64.StdEncoding.EncodeToString(sum[:])))
	noted := filepath.Join(d.home, ".local/share/bawn/plugins/tiny/noted")
	set, value, _ := strings.Cut(trusting, "=")
	d.installed(t, fmt.Sprintf("run.npx = \"tiny-server@1.0.0\"\nenv.%s = %q\n", set, value))
	if text, err := os.ReadFile(noted); string(text) != "reached\nrefused\n" {
		t.Errorf("it has %q, %v; want its registry reached the first time, and refused from then on", text, err)
	}
}

// TestGoPlugin is the same with go run.
func TestGoPlugin(t *testing.T) {
	testenv.Whole(t)
	d := newAccount(t, "go")
	host := at("proxy", "*.golang.org")
	mod := "module example.test/tiny\n\ngo 1.21\n"
	d.publish(t, host, "example.test/tiny/@v/list", "v1.0.0\n")
	d.publish(t, host, "example.test/tiny/@v/v1.0.0.info", `{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`)
	d.publish(t, host, "example.test/tiny/@v/v1.0.0.mod", mod)
	d.publish(t, host, "example.test/tiny/@v/v1.0.0.zip", packed(t, true, "example.test/tiny@v1.0.0/go.mod", mod, "example.test/tiny@v1.0.0/main.go", tinyGo, "example.test/tiny@v1.0.0/.agents/skill.md", "x"))
	d.installed(t, "run.go = \"example.test/tiny@v1.0.0\"\nenv = {GONOSUMDB = \"example.test\", GOTOOLCHAIN = \"local\", GOFLAGS = \"-modcacherw\"}\n")
}
