package importer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cadreLimits are Cadre's limits with their keys and bounds here. An engine takes a
// limit of zero or less as no limit.
var cadreLimits = map[string]struct {
	key      string
	min, max int64
}{
	"cpuShares": {"cpu_shares", 2, 262144}, "memoryMb": {"memory_mb", 16, 1 << 30}, "pidsLimit": {"pids_limit", 1, 1 << 22},
	"timeoutMs": {"timeout", 1000, 30 * 24 * 3600 * 1000},
}

// resource reads a limit, in the units of its name.
func (b *cadreBlock) resource(m member) {
	at := Item{Line: m.value.line, Text: "resources." + m.key + ": " + m.value.text()}
	k, known := cadreLimits[m.key]
	v, err := m.value.integer()
	switch {
	case m.key == "ulimits":
		b.ulimits(m)
	case !known:
		b.left(at, noEqual)
	case err != nil || v < k.min || v > k.max:
		b.left(at, "want an integer from %d to %d", k.min, k.max)
	case m.key == "timeoutMs":
		b.set(at.Line, b.in+"resources.timeout", milliseconds(v))
		b.left(at, "Cadre gave it to the engine as the patience of a stop, which ends no run; here the session ends then")
	default:
		b.set(at.Line, b.in+"resources."+k.key, v)
	}
}

// integer is the value of a number without a fraction.
func (n *node) integer() (int64, error) {
	if n == nil {
		return 0, strconv.ErrSyntax
	}
	number, _ := n.value.(json.Number)
	return number.Int64()
}

// milliseconds writes a duration exactly.
func milliseconds(v int64) string {
	if v%1000 == 0 {
		return fmt.Sprintf("%ds", v/1000)
	}
	return fmt.Sprintf("%dms", v)
}

// cadreUlimits are the limits of setrlimit(2) that have keys here, with the
// unit of each key.
var cadreUlimits = map[string]struct {
	key       string
	unit      int64
	min, most int64
}{
	"nofile": {"open_files", 1, 16, 1 << 20},
	"fsize":  {"file_size_mb", 1 << 20, 1, 1 << 40},
}

func (b *cadreBlock) ulimits(m member) {
	if m.value.kind != '[' {
		b.left(Item{Line: m.value.line, Text: "resources.ulimits: " + m.value.text()}, "it is no list")
	}
	if m.value.kind == '[' && len(m.value.items) == 0 {
		b.left(Item{Line: m.value.line, Text: "resources.ulimits: [...]"}, "an empty list limits nothing")
	}
	for _, it := range m.value.items {
		b.ulimit(it)
	}
}

// ulimit reads one limit of a process. Where its soft end is below the hard
// one, which a process may raise it to, the soft one counts.
func (b *cadreBlock) ulimit(n *node) {
	kind, _ := n.get("type").string()
	soft, softErr := n.get("soft").integer()
	hard, hardErr := n.get("hard").integer()
	at := Item{Line: n.line, Text: fmt.Sprintf("resources.ulimits: %s=%s:%s", kind, n.get("soft").text(), n.get("hard").text())}
	k, known := cadreUlimits[kind]
	v := soft / max(k.unit, 1)
	switch {
	case kind == "nproc":
		b.left(at, "the kernel counts it for all sessions of a user together; set pids_limit, which counts one session's")
	case !known:
		b.left(at, noEqual)
	case softErr != nil || hardErr != nil || soft > hard || v < k.min || v > k.most:
		b.left(at, "want a soft end that is no higher than the hard one, from %d to %d", k.min*k.unit, k.most)
	default:
		b.set(n.line, b.in+"resources."+k.key, v)
		if soft != hard || v*k.unit != soft {
			b.left(at, "%s = %d is the soft end, rounded down; a process can't raise it to the hard one", k.key, v)
		}
	}
}

// dockerOption reads what Cadre's Docker provider is told.
func (b *cadreBlock) dockerOption(m member) {
	switch m.key {
	case "image":
		b.image(m)
	case "extraArgs":
		b.dockerArgs(m)
	default:
		b.left(Item{Line: m.value.line, Text: "dockerOptions." + m.key}, noEqual)
	}
}

// image takes a reference; that Bawn wants its digest is said.
func (b *cadreBlock) image(m member) {
	image, _ := m.value.string()
	at := Item{Line: m.value.line, Text: "dockerOptions.image: " + m.value.text()}
	name, digest, pinned := strings.Cut(image, "@")
	switch {
	case !reference(name) || len(image) > 512 || pinned && !imageDigest(digest):
		b.left(at, "it is no reference to an image")
		return
	case !pinned:
		b.left(at, "a tag may mean another image tomorrow: want it as NAME@sha256:DIGEST, which \"docker image inspect --format '{{.RepoDigests}}' NAME\" prints")
	}
	b.set(at.Line, "isolation.docker_options.image", image)
}

func reference(name string) bool {
	word := func(c rune) bool { return c < 0x80 && (nameByte(byte(c)) || strings.ContainsRune(".-/:", c)) }
	return name != "" && nameByte(name[0]) && name[0] != '_' && !strings.ContainsFunc(name, func(c rune) bool { return !word(c) }) &&
		!strings.HasSuffix(name, ":") && !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.Trim(part, ".") == "" })
}

func imageDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// Arguments of docker run by their treatment.
var (
	// dockerShort are those of one letter that a value follows.
	dockerShort = map[string]string{
		"-a": "--attach", "-c": "--cpu-shares", "-e": "--env", "-h": "--hostname", "-l": "--label",
		"-m": "--memory", "-p": "--publish", "-u": "--user", "-v": "--volume", "-w": "--workdir",
	}
	// dockerSwitches take no value.
	dockerSwitches = []string{"--rm", "--init", "--read-only", "--interactive", "--tty", "--quiet", "--privileged", "--publish-all", "--detach", "--oom-kill-disable", "--no-healthcheck", "--sig-proxy", "--disable-content-trust"}
	// dockerCarried narrow, or touch nothing.
	dockerCarried = []string{
		"--init", "--read-only", "--rm", "--cap-drop", "--label", "--hostname", "--domainname", "--add-host", "--tmpfs", "--ulimit", "--shm-size", "--memory", "--pids-limit",
		"--cpu-shares", "--cpus", "--cpuset-cpus", "--cpuset-mems", "--oom-score-adj",
	}
	// dockerWidening count where the user's own configuration allows them.
	dockerWidening = []string{"--device", "--gpus", "--group-add", "--sysctl", "--runtime", "--ipc", "--uts", "--userns", "--cgroupns", "--volume", "--security-opt"}
	// dockerElsewhere have a key of their own.
	dockerElsewhere = map[string]string{
		"--env": "env", "--publish": "ports", "--network": "network", "--net": "network", "--mount": "rw and ro",
	}
)

// dockerArgs reads arguments of docker run, each with its value in one entry.
func (b *cadreBlock) dockerArgs(m member) {
	var args []string
	items := b.strings("dockerOptions.extraArgs", m.value)
	for len(items) > 0 {
		var at Item
		if at, items = nextArg(items); b.carried(at) {
			args = append(args, at.Text)
		}
	}
	if len(args) > 0 {
		b.set(m.value.line, "isolation.docker_options.extra_args", args)
	}
}

// nextArg takes one argument off the list, in its long form.
func nextArg(items []Item) (Item, []Item) {
	at, rest := items[0], items[1:]
	if long, ok := dockerShort[at.Text]; ok {
		at.Text = long
	}
	_, elsewhere := dockerElsewhere[at.Text]
	alone := !strings.HasPrefix(at.Text, "--") || strings.Contains(at.Text, "=") || slices.Contains(dockerSwitches, at.Text)
	takes := elsewhere || slices.Contains(dockerCarried, at.Text) || slices.Contains(dockerWidening, at.Text)
	if !alone && len(rest) > 0 && (takes || !strings.HasPrefix(rest[0].Text, "-")) {
		return Item{Line: at.Line, Text: at.Text + "=" + rest[0].Text}, rest[1:]
	}
	return at, rest
}

// carried reports whether an argument is carried over, or says why not. Its
// value may be a secret and is told only where it widens.
func (b *cadreBlock) carried(at Item) bool {
	name, _, valued := strings.Cut(at.Text, "=")
	plain := unspeakable(at.Text) == "" && len(at.Text) <= 4096
	key, elsewhere := dockerElsewhere[name]
	widens := slices.Contains(dockerWidening, name)
	if !widens {
		at.Text = name
	}
	at.Text = fmt.Sprintf("dockerOptions.extraArgs: %.60s", at.Text)
	switch {
	case plain && slices.Contains(dockerCarried, name) && valued != slices.Contains(dockerSwitches, name):
		return true
	case widens:
		b.left(at, "it would widen the sandbox; if you mean it, name it in extra_args and in allow_args of your own configuration")
	case elsewhere:
		b.left(at, "an argument of the engine can't say that here; see isolation.%s", key)
	default:
		b.left(at, "Bawn does not take it: it would take a wall away, is decided for every session, or is unknown")
	}
	return false
}
