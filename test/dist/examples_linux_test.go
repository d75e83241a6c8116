package dist

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// managed puts the example's files where they hold for everybody, and has ada try what
// they forbid.
func managed(t *testing.T, r *root) {
	r.host("sh", "-c", `mkdir "$1/etc/bawn" && cp ../../examples/managed/*.toml "$1/etc/bawn/" && chmod -R go+rX "$1/etc/bawn"`, "sh", r.dir)
	defer r.host("rm", "-r", filepath.Join(r.dir, "etc/bawn"))
	for _, step := range []struct {
		line, want string
		fails      bool
	}{
		{"bawn config check", "", false},
		{"bawn policy check /etc/bawn/policy.toml", "", false},
		{"bawn run -q -- echo inside", "inside\n", false},
		{"bawn run --net full -- true", "isolation.network is pinned at /etc/bawn/config.toml", true},
		{"bawn run --net none -- true", "isolation.network is pinned at /etc/bawn/config.toml", true},
		{"bawn policy decide 'npm publish'", "deny: publish-by-ci: releases are made by CI", false},
		{"bawn policy decide 'npm pack'", "ask: ", false},
		{"echo secret >key.p12; bawn run -q -- cat key.p12", "Permission denied", true},
	} {
		out, err := r.user(step.line)
		if !strings.Contains(out, step.want) || (err != nil) != step.fails {
			t.Errorf("%s: %v, %q; want %q", step.line, err, out, step.want)
		}
	}
}

// key is what a job's secret is; no guest may have it.
const key = "sk-ant-INVENTED-0123456789"

// agent is what runs in the pipelines: it says what it holds, and tries a host that
// nobody has allowed, until that is refused.
const agent = `echo "key: $ANTHROPIC_API_KEY"; bash -c "exec 3<>/dev/tcp/unknown.example/443; read -r -u 3"; echo kept >result; exit 7`

// ci runs the steps of the GitHub Action and of the GitLab template one by one.
func ci(t *testing.T, r *root) {
	r.host("sh", "-c", `mkdir -p "$1/opt/ci/examples" && cp -r ../../examples/ci "$1/opt/ci/examples/" && chmod -R go+rX "$1/opt/ci" && cp "$1/var/new.deb" "$1/opt/ci/bawn.deb"`, "sh", r.dir)
	defer r.host("rm", "-r", filepath.Join(r.dir, "opt/ci"))
	t.Run("github", func(t *testing.T) { github(t, r) })
	t.Run("gitlab", func(t *testing.T) { gitlab(t, r) })
}

func github(t *testing.T, r *root) {
	var action struct {
		Runs struct {
			Steps []struct {
				Name, Run, Uses string
				Env             map[string]string
			}
		}
	}
	read(t, "../../examples/ci/action.yml", &action)
	inputs := strings.NewReplacer("${{ inputs.package }}", "/opt/ci/bawn.deb", "${{ inputs.command }}", agent, "${{ inputs.secrets }}", "ANTHROPIC_API_KEY", "${{ inputs.flags }}", "--pids 200")
	for _, s := range action.Runs.Steps {
		if s.Uses != "" {
			continue // keeps the report
		}
		environ := map[string]string{"GITHUB_ACTION_PATH": "/opt/ci/examples/ci", "GITHUB_STEP_SUMMARY": "/home/ada/summary", "ANTHROPIC_API_KEY": key, "BAWN_JOB_DIR": "/home/ada/github"}
		for name, value := range s.Env {
			environ[name] = inputs.Replace(value)
		}
		step(t, r, s.Name, s.Run, environ, "github")
	}
	checkReport(t, r, "github")
	if text, err := os.ReadFile(filepath.Join(r.dir, "home/ada/summary")); err != nil || !strings.Contains(string(text), "unknown.example") {
		t.Errorf("the job's summary: %v\n%s", err, text)
	}
}

func gitlab(t *testing.T, r *root) {
	var file map[string]struct {
		Variables map[string]string
		Before    []string `yaml:"before_script"`
		Script    []string
		After     []string `yaml:"after_script"`
	}
	read(t, "../../examples/ci/gitlab.yml", &file)
	job := file[".bawn"]
	environ := job.Variables
	for name, value := range map[string]string{"BAWN_PACKAGE": "/opt/ci/bawn.deb", "BAWN_COMMAND": agent, "BAWN_SECRETS": "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY": key, "BAWN_JOB_DIR": "/home/ada/gitlab"} {
		environ[name] = value
	}
	for _, list := range [][]string{job.Before, job.Script, job.After} {
		for _, line := range list {
			step(t, r, line, strings.ReplaceAll(line, "examples/ci/job", "/opt/ci/examples/ci/job"), environ, "gitlab")
		}
	}
	checkReport(t, r, "gitlab")
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// step runs a line of a pipeline: as root where it installs, else as ada in a project of
// the pipeline's.
func step(t *testing.T, r *root, name, line string, environ map[string]string, project string) {
	t.Helper()
	var words []string
	for n, v := range environ {
		words = append(words, n+"="+v)
	}
	sort.Strings(words)
	if strings.Contains(line, "dpkg -i") {
		r.root(append([]string{"env"}, append(words, "sh", "-c", strings.TrimPrefix(line, "sudo "))...)...)
		return
	}
	cmd := r.command(append([]string{"setpriv", "--reuid=ada", "--regid=ada", "--init-groups", "--inh-caps=-all",
		"env", "-i", "HOME=/home/ada", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}, append(words, "sh", "-c", "mkdir -p ~/"+project+"-work && cd ~/"+project+"-work && "+line)...)...)
	out, err := cmd.CombinedOutput()
	code := cmd.ProcessState.ExitCode()
	if strings.Contains(line, "job run") {
		if code != 7 || !strings.Contains(string(out), "key: sk-ant-") || strings.Contains(string(out), key) {
			t.Errorf("%s: exit code %d, want the guest's 7 and a placeholder of the key: %s", name, code, out)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v: %s", name, err, out)
	}
}

// checkReport looks at what the job leaves: the log, each line an event, without the
// key, and the refusal in the summary.
func checkReport(t *testing.T, r *root, project string) {
	t.Helper()
	dir := filepath.Join(r.dir, "home/ada", project+"-work/bawn-report")
	log, err := os.ReadFile(filepath.Join(dir, "bawn-log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	refused := false
	for _, line := range strings.Split(strings.TrimSpace(string(log)), "\n") {
		refused = refused || (strings.Contains(line, "unknown.example") && strings.Contains(line, `"deny"`))
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %.200s", line)
		}
	}
	if !refused || strings.Contains(string(log), key) {
		t.Errorf("the log lacks the refusal, or has the key:\n%s", log)
	}
	if out, err := exec.Command("grep", "-r", "-l", "-a", key, filepath.Join(r.dir, "home/ada")).CombinedOutput(); err == nil {
		t.Errorf("the key lies in %s", out)
	}
}
