package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// objector is a hook plugin that denies what speaks of a deployment, after it
// has tried to write where its manifest gives it nothing.
const objector = `for place in OUTSIDE OUTSIDE/src/project; do (echo x > $place/stolen) 2>/dev/null; done
echo x > "$HOME/own"
while read -r line; do
	id=${line#*'"id":'}
	id=${id%%,*}
	case $line in
	*deploy*) echo '{"id":'"$id"',"verdict":"deny","reason":"no deployments on Sundays"}' ;;
	*) echo '{"id":'"$id"',"verdict":"pass"}' ;;
	esac
done
`

// object adds a hook plugin that is a script.
func (r *account) object(t *testing.T, kind, script string) {
	t.Helper()
	file := filepath.Join(r.home, "guard/guard.sh")
	r.put(t, file, strings.ReplaceAll(script, "OUTSIDE", r.home))
	manifest := fmt.Sprintf("kind = \"hook\"\nrun.command = [\"/bin/sh\", %q]\nfiles.read = [%q]\nhook.kinds = [%q]\n", file, filepath.Dir(file), kind)
	r.put(t, "guard.toml", manifest)
	got := r.bawn(t, "plugin", "add", filepath.Join(r.home, "guard.toml"), "--replace", "--yes")
	if got.code != 0 || !strings.Contains(got.err, "never allowed") {
		t.Fatalf("add: %+v", got)
	}
}

// split has an agent's shell run a line in a session of two zones.
func (r *account) split(t *testing.T, line string) result {
	t.Helper()
	agent := fmt.Sprintf("import subprocess; p = subprocess.run(['/bin/sh', '-c', %q]); exit(p.returncode)", line)
	return r.bawn(t, "run", "--split", "--mode", "permissive", "--", "/usr/bin/python3", "-c", agent)
}

// TestHookPlugin has a plugin object to one command of an agent and to no other.
// It sees and writes what its manifest says; once it is dead nothing runs.
func TestHookPlugin(t *testing.T) {
	t.Parallel()
	r := newAccount(t, "python3")
	if got := r.split(t, "echo deploy it"); got.code != 0 || !strings.Contains(got.out, "deploy it") {
		t.Fatalf("control: without a plugin: %+v", got)
	}
	r.object(t, "command", objector)
	if got := r.split(t, "echo build it"); got.code != 0 || !strings.Contains(got.out, "build it") {
		t.Errorf("what it does not object to: %+v", got)
	}
	got := r.split(t, "echo deploy it")
	if got.code == 0 || got.out != "" || !strings.Contains(got.err, "no deployments on Sundays") || !strings.Contains(got.err, "plugin:guard") {
		t.Errorf("what it objects to: %+v", got)
	}
	list := r.events(t, "echo deploy it")
	if len(list) == 0 || list[len(list)-1]["resolved"] != "deny" || list[len(list)-1]["rule"] != "plugin:guard" {
		t.Errorf("the log has %v", list)
	}
	if _, err := os.Stat(filepath.Join(r.home, ".local/share/bawn/plugins/guard/own")); err != nil {
		t.Errorf("control: it can't write in its own directory: %v", err)
	}
	for _, place := range []string{r.home, r.work} {
		if _, err := os.Stat(filepath.Join(place, "stolen")); err == nil {
			t.Errorf("it has written into %s", place)
		}
	}
	r.object(t, "command", "exit 3\n")
	if got := r.split(t, "echo build it"); got.code == 0 || got.out != "" || !strings.Contains(got.err, "it has ended") {
		t.Errorf("a dead plugin: %+v", got)
	}
	r.put(t, ".config/bawn/plugins/guard.toml", "kind = \"hook\"\nrun.comand = []\n")
	if got := r.split(t, "echo build it"); got.code == 0 || got.out != "" || !strings.Contains(got.err, "builtin:hook-plugins") {
		t.Errorf("a broken manifest: %+v", got)
	}
}

// TestHookPluginOfTools has a plugin object to a call of another plugin's tool,
// which its manifest allows.
func TestHookPluginOfTools(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.honest(t)
	r.object(t, "tool", objector)
	d := &gatewayClient{ClientSession: r.session(t, nil)}
	d.works(t, "that it does not object to")
	got, failed := d.call(t, patience, "honest__work", map[string]any{"path": "deploy"})
	if !failed || !strings.Contains(got, "no deployments on Sundays") {
		t.Errorf("%q", got)
	}
}
