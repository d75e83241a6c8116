//go:build linux

package keys_test

// egress is a network by name, for keys about it.
const egress = "network = \"allowlist\"\n"

// write writes to a place and says how that went.
func write(p string) string {
	return "if echo x 2>/dev/null >" + p + "; then echo wrote; else echo refused; fi 2>/dev/null"
}

// killed stands for any end but the guest's own: which signal it is, is the
// shell's and the limit's.
const killed = -1

// effects are those of every key of the table isolation.
var effects = map[string]effect{
	"enabled":                   {value: "false", script: "echo ran", with: "", code: 2},
	"provider":                  {value: `"landlock"`, flag: []string{"--provider", "landlock"}, script: `test "$PPID" = 1 && echo apart || echo shared`, with: "shared"},
	"allow_fallback_to_host":    {value: "true", shown: "cmd/bawn/testdata/script/run-fallback.txtar: allow_fallback_to_host"},
	"gvisor_accept_unprotected": {shown: "internal/sandbox/gvisor/gvisor_linux_test.go: Unprotected"},
	"runsc":                     {value: `"/nonexistent/runsc"`, shown: "internal/sandbox/sandboxtest/contenders_test.go: runsc ="},
	"policy_profile":            {value: `"readonly"`, flag: []string{"--profile", "readonly"}, script: write("new"), with: "refused"},
	"agent_profile":             {value: "false", flag: []string{"--no-agent-profile"}, shown: "cmd/bawn/testdata/script/home-agents.txtar: agent_profile"},

	"network":        {value: `"full"`, flag: []string{"--net", "full"}, script: "readlink /proc/self/ns/net", with: hostNetwork()},
	"hosts":          {value: `["example.org"]`, flag: []string{"--allow", "example.org"}, also: egress, plan: true, shown: "test/egress/map_linux_test.go: hosts"},
	"http":           {value: `["example.org GET /v1/**"]`, flag: []string{"--http", "example.org GET /v1/**"}, also: egress, plan: true, shown: "test/egress/place_linux_test.go: --http"},
	"git":            {value: `["example.org fetch"]`, flag: []string{"--git", "example.org fetch"}, also: egress, plan: true, shown: "test/egress/git_linux_test.go: --git"},
	"host_ports":     {value: `["5432"]`, flag: []string{"--host-port", "5432"}, also: egress, plan: true, shown: "internal/sandbox/sandboxtest/providers_test.go: --host-port"},
	"ports":          {value: `["18080:8080"]`, flag: []string{"--publish", "18080:8080"}, also: egress, plan: true, shown: "test/egress/place_linux_test.go: -p"},
	"secrets":        {value: `["model"]`, flag: []string{"--secret", "model"}, also: egress, plan: true, shown: "internal/sandbox/sandboxtest/secrets_linux_test.go: --secret"},
	"ssh_agent":      {value: "true", flag: []string{"--ssh-agent"}, also: egress, plan: true, shown: "test/egress/agent_linux_test.go: --ssh-agent"},
	"upstream_proxy": {value: `"http://127.0.0.1:3128"`, also: egress, plan: true, shown: "test/egress/upstream_linux_test.go: upstream_proxy"},
	"ask_timeout":    {value: `"9s"`, flag: []string{"--ask-timeout", "9s"}, also: egress, plan: true, shown: "test/tree/life_linux_test.go: --ask-timeout"},
	"while_away":     {value: `"wait"`, flag: []string{"--while-away", "wait"}, shown: "test/approvals/away_linux_test.go: --while-away"},
	"docker_api":     {value: "true", flag: []string{"--docker"}, shown: "test/containers/containers_linux_test.go: --docker"},

	"copy":            {value: "true", flag: []string{"--copy"}, script: "echo mine >own; grep -q \" $PWD .* - overlay\" /proc/self/mountinfo && echo copied", with: "copied"},
	"copy_agents":     {value: `["sh"]`, script: "echo mine >own; grep -q \" $PWD .* - overlay\" /proc/self/mountinfo && echo copied", with: "copied"},
	"split":           {value: "true", flag: []string{"--split"}, plan: true, shown: "test/split/zones_linux_test.go: split"},
	"split_workspace": {value: `"read-only"`, flag: []string{"--split-workspace", "ro"}, also: "split = true\n", plan: true, shown: "test/split/zones_linux_test.go: --split-workspace"},
	"models":          {value: `["example.org"]`, flag: []string{"--model", "example.org"}, also: egress + "split = true\n", plan: true, shown: "test/split/zones_linux_test.go: --model"},

	"rw":           {value: `["~/aside"]`, flag: []string{"--rw", "../../aside"}, script: write("~/aside/file"), with: "wrote"},
	"ro":           {value: `["kept"]`, flag: []string{"--ro", "kept"}, script: write("kept/file"), with: "refused"},
	"deny":         {value: `["*.pem"]`, flag: []string{"--deny", "*.pem"}, script: "cat x.pem 2>/dev/null || echo denied; " + write("y.pem"), with: "denied\nrefused"},
	"open":         {value: `["aws"]`, flag: []string{"--open", "aws"}, script: "cat ~/.aws/credentials 2>/dev/null || echo hidden", with: "of the host"},
	"env":          {value: `["SPECIAL"]`, flag: []string{"--env", "SPECIAL"}, script: "echo $SPECIAL", with: "yes"},
	"mask_env":     {value: `"on"`, flag: []string{"--mask-env"}, script: "grep -q 4f9c2d7e8b1a6035c7e2f1d0 .env && echo read || echo masked", with: "masked"},
	"log_programs": {value: "true", shown: "cmd/bawn/testdata/script/run-programs.txtar: log_programs"},
	"caches":       {value: `"read-only"`, flag: []string{"--caches", "read-only"}, script: "cat ~/.npm/_cacache/file 2>/dev/null || echo empty; " + write("~/.npm/_cacache/new"), with: "of the host\nrefused"},
	"cache_dirs":   {value: `["~/.mycache"]`, script: "test -e ~/.mycache/file || echo its own; " + write("~/.mycache/new"), with: "its own\nwrote"},
	"devices":      {value: `["fuse"]`, flag: []string{"--device", "fuse"}, script: "test -e /dev/fuse && echo there", with: "there"},
	"protect":      {value: "false", script: write(".envrc") + "; mkdir -p .git/hooks; " + write(".git/hooks/pre-commit"), with: "wrote\nwrote"},
	"protected":    {value: `["deploy.sh"]`, flag: []string{"--protect", "deploy.sh"}, script: write("deploy.sh"), with: "refused"},
	"unprotect":    {value: `[".envrc"]`, flag: []string{"--unprotect", ".envrc"}, script: write(".envrc"), with: "wrote"},

	"resources.cpus":            {value: "0.5", flag: []string{"--cpus", "0.5"}, plan: true, unless: "limits.cpu", shown: "internal/linux/cgroup/parse_test.go: cpu.max=150000"},
	"resources.cpu_shares":      {value: "512", plan: true, unless: "limits.cpu", shown: "internal/linux/cgroup/parse_test.go: cpu.shares=512"},
	"resources.memory_mb":       {value: "32", flag: []string{"--memory", "32m"}, script: `x=$(head -c 60000000 /dev/zero | tr '\0' a); echo ${#x}`, unless: "limits.memory", code: killed},
	"resources.pids_limit":      {value: "20", flag: []string{"--pids", "20"}, script: `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 2 & done 2>/dev/null; echo all`, unless: "limits.pids", code: 2},
	"resources.tmp_mb":          {value: "7", script: `echo $(( $(stat -fc '%b*%S' /tmp) ))`, with: "7340032"},
	"resources.open_files":      {value: "64", script: "ulimit -n", with: "64"},
	"resources.file_size_mb":    {value: "2", script: "ulimit -f", with: "4096"},
	"resources.timeout":         {value: `"1s"`, flag: []string{"--timeout", "1s"}, script: "sleep 3; echo late", code: 124},
	"resources.net_connections": {value: "3", also: egress, plan: true, shown: "test/egress/limits_linux_test.go: net_connections"},
	"resources.secret_requests": {value: "3", also: egress, plan: true, shown: "internal/egressd/budget_test.go: secret_requests"},
	"resources.secret_out_mb":   {value: "3", also: egress, plan: true, shown: "internal/egressd/budget_test.go: secret_out_mb"},
	"resources.net_out_mb":      {value: "3", also: egress, plan: true, shown: "test/egress/limits_linux_test.go: net_out_mb"},

	"docker_options.image":          {shown: "internal/sandbox/docker/plan_test.go: Image"},
	"docker_options.workspace":      {shown: "internal/sandbox/docker/plan_test.go: Workspace"},
	"docker_options.extra_args":     {shown: "internal/sandbox/docker/plan_test.go: ExtraArgs"},
	"docker_options.allow_args":     {shown: "internal/sandbox/docker/plan_test.go: Allowed"},
	"docker_options.memory_swap_mb": {shown: "internal/sandbox/docker/plan_test.go: MemorySwapMB"},
	"docker_options.runtime":        {shown: "internal/sandbox/docker/plan_test.go: Runtime"},
	"docker_options.host":           {shown: "internal/sandbox/docker/elsewhere_linux_test.go: Host"},
	"docker_options.accept_escapes": {shown: "test/containers/unsafe_linux_test.go: accept_escapes"},
}

// flagEffects are those of flags that no key stands for.
var flagEffects = map[string]effect{
	"cwd":     {flag: []string{"--cwd", "sub"}, script: `basename "$PWD"`, with: "sub"},
	"only":    {flag: []string{"--only"}, also: "rw = [\"~/aside\"]\n", script: write("~/aside/file"), with: "refused"},
	"pin-git": {flag: []string{"--pin-git"}, script: "env | grep -q ^GIT_CONFIG_COUNT= && echo pinned", with: "pinned"},
	"no-copy": {shown: "cmd/bawn/testdata/script/copy-config.txtar: --no-copy"},
	"name":    {shown: "cmd/bawn/testdata/script/copy.txtar: --name"},
	"from":    {shown: "cmd/bawn/testdata/script/copy-from.txtar: --from"},
	"covered": {shown: "cmd/bawn/testdata/script/run-covered.txtar: --covered"},
	"as":      {shown: "cmd/bawn/testdata/script/run-as.txtar: --as"},
	"image":   {shown: "internal/config/only_test.go: --image"},
}

// others shape no isolation: they say how the session is spoken of, decided about,
// shown or reached.
var others = []string{
	"mode", "agent", "plan", "json", "quiet", "detach", "attachable", "detach-keys", "for-session",
}
