package mcp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// official returns the program of a package that test/agent/install has put
// there.
func official(t *testing.T, folder, pkg, program string) string {
	t.Helper()
	dir := os.Getenv("BAWN_TEST_AGENTS")
	file := filepath.Join(dir, folder, "node_modules", pkg, program)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%v; BAWN_TEST_AGENTS=$(test/agent/install) puts it there", err)
	}
	return file
}

const servers = "@modelcontextprotocol/server-"

// officials adds and pins the official servers, with the reference server of
// files over a part of the project.
func (r *account) officials(t *testing.T) {
	t.Helper()
	dir := os.Getenv("BAWN_TEST_AGENTS")
	r.put(t, "src/project/docs/a.md", "text of a")
	r.put(t, "src/project/secret.md", "PRIVATE")
	for name, rest := range map[string]string{"filesystem": "docs", "everything": "", "memory": ""} {
		run := []string{"node", official(t, "mcp-"+name, servers+name, "dist/index.js")}
		if rest != "" {
			run = append(run, rest)
		}
		command, err := json.Marshal(run)
		check(t, err)
		files := fmt.Sprintf("read = [%q]", dir)
		if name == "filesystem" {
			files += `, write = ["docs"]`
		}
		r.put(t, ".config/bawn/plugins/"+name+".toml", fmt.Sprintf("run = {command = %s}\nfiles = {%s}\ntools.allow = [\"*\"]\nlimits.pids = 64\nenv.MEMORY_FILE_PATH = %q\n",
			command, files, r.home+"/.local/share/bawn/plugins/memory/graph.json"))
		if got := r.bawn(t, "plugin", "pin", name, "--yes"); got.code != 0 {
			t.Fatalf("%s: %+v", name, got)
		}
	}
	if got := r.differences(t, "everything"); len(got) != 0 {
		t.Errorf("it says something else each time: %v", got)
	}
}

// TestOfficialServers: they work behind the gateway, each with no more than its
// manifest, and the inspector finds a server as it expects one.
func TestOfficialServers(t *testing.T) {
	t.Parallel()
	r := newAccount(t, "node", "npm-agents")
	r.officials(t)
	d := r.gateway(t)
	if n := len(d.tools(t)); n < 25 {
		t.Errorf("%d tools", n)
	}
	for _, c := range []struct {
		tool string
		args map[string]any
		want string // "" wants a failure
	}{
		{"filesystem__read_text_file", map[string]any{"path": r.work + "/docs/a.md"}, "text of a"},
		{"filesystem__write_file", map[string]any{"path": r.work + "/docs/b.md", "content": "text of b"}, "Success"},
		{"filesystem__read_text_file", map[string]any{"path": r.work + "/secret.md"}, ""},
		{"filesystem__read_text_file", map[string]any{"path": r.work + "/docs/../secret.md"}, ""},
		{"everything__echo", map[string]any{"message": "hello"}, "hello"},
		{"everything__get-sum", map[string]any{"a": 2, "b": 40}, "42"},
		{"memory__create_entities", map[string]any{"entities": []any{map[string]any{"name": "Bawn", "entityType": "program", "observations": []any{"is a wall"}}}}, "Bawn"},
		{"memory__read_graph", nil, "is a wall"},
	} {
		got, failed := d.call(t, 30*time.Second, c.tool, c.args)
		if failed != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, "PRIVATE") {
			t.Errorf("%s %v: failed %t: %q; want %q", c.tool, c.args, failed, got, c.want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(r.work, "docs/b.md")); string(text) != "text of b" {
		t.Errorf("%q, %v", text, err)
	}
	check(t, d.Close())
	r.inspector(t)
}

// inspector has the protocol's own inspector find the tools and call one.
func (r *account) inspector(t *testing.T) {
	t.Helper()
	inspect := func(args ...string) result {
		cli := official(t, "mcp-inspector", "@modelcontextprotocol/inspector-cli", "build/cli.js")
		return r.run(t, append([]string{"node", cli, "--cli", filepath.Join(r.bin, "bawn"), "mcp", "--"}, args...)...)
	}
	if got := inspect("--method", "tools/list"); got.code != 0 || !strings.Contains(got.out, `"filesystem__read_text_file"`) || !strings.Contains(got.out, `"everything__echo"`) {
		t.Errorf("%+v", got)
	}
	if got := inspect("--method", "tools/call", "--tool-name", "everything__echo", "--tool-arg", "message=hello"); got.code != 0 || !strings.Contains(got.out, "hello") {
		t.Errorf("%+v", got)
	}
}
