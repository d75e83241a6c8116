package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

// A form says how much of a command line a text stands for.
type form uint8

const (
	exact  form = iota // the line is this
	prefix             // these words, then any further ones
	stem               // it begins with this text, even inside a word
)

// command adds the rule that a pattern of command lines comes to. The rule may
// bring its priority, reason and examples along.
func (r *reader) command(at Item, text string, f form, rule bawn.Rule) {
	rule.Kind, rule.Operations = bawn.Command, []bawn.Operation{bawn.Exec}
	var err error
	var example string
	if rule.Verdict == bawn.Allow {
		rule.Pattern, err = allowPattern(text, f)
		example = strings.Join(strings.Fields(text), " ")
	} else {
		rule.Pattern, example, err = strictPattern(text, f)
	}
	if err != nil {
		r.left(at, "%v", err)
		return
	}
	if example != "" && !slices.Contains(rule.Match, example) {
		rule.Match = append([]string{example}, rule.Match...)
	}
	before := len(r.Rules)
	if r.add(at, rule); len(r.Rules) > before && f == stem && rule.Verdict == bawn.Allow {
		r.left(at, "only whole words are carried over: the rule allows %q", rule.Pattern)
	}
}

// plainWord accepts words that mean themselves to a shell and to our patterns.
func plainWord(w string) bool {
	return w != "" && w[0] != '~' && !strings.ContainsFunc(w, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_./:=@%+-^~", c)
	})
}

// allowPattern makes the pattern of a rule that allows. It matches no line
// that the text does not.
func allowPattern(text string, f form) (string, error) {
	words := strings.Fields(text)
	switch {
	case len(words) == 0:
		return "", fmt.Errorf("it allows every command; name the commands")
	case strings.Contains(text, "*"):
		return "", fmt.Errorf("a wildcard before the end allows more than it shows; name the words")
	case strings.Contains(words[0], "="):
		return "", fmt.Errorf("a rule can't set a variable; allow the command without it")
	}
	if i := slices.IndexFunc(words, func(w string) bool { return !plainWord(w) }); i >= 0 {
		return "", fmt.Errorf("the word %q has characters that a shell reads; a rule names plain words", words[i])
	}
	if why := tooMuch(words, f); why != "" {
		return "", fmt.Errorf("%s", why)
	}
	if f == exact {
		return strings.Join(words, " "), nil
	}
	return strings.Join(words, " ") + " *", nil
}

// families are programs whose subcommands have so little in common that a
// permission without one is no statement.
var families = strings.Fields(`git make npx bunx docker podman kubectl oc npm pnpm yarn corepack cargo go gh glab aws gcloud az
	helm terraform tofu pulumi ansible brew apt apt-get dnf yum pip pip3 uv poetry pipenv hatch pdm conda mise asdf systemctl
	nix just task rake bundle gem composer dotnet mvn gradle gradlew flutter dart swift zig rustup vagrant heroku vercel fly`)

// runners run the command that follows these words.
var runners = []string{
	"npm exec", "npm x", "pnpm exec", "pnpm dlx", "yarn exec", "yarn dlx", "uv run", "poetry run", "pipenv run", "hatch run", "pdm run",
	"conda run", "mise exec", "asdf exec", "bundle exec", "nix run", "nix develop", "docker run", "docker exec", "podman run", "podman exec",
	"docker compose run", "docker compose exec", "kubectl exec", "kubectl run", "kubectl debug", "go run", "go tool", "cargo run", "git submodule foreach",
	"git bisect run", "gh alias", "gh extension", "git config", "npm config", "make -f", "make -C", "git -c",
}

// interpreters beside those that the policy knows.
var interpreters = strings.Fields(`pypy ipython tsx ts-node rscript julia osascript pwsh powershell cmd groovy scala elixir erl ghci
	clojure racket guile tclsh wish m4 ed ex vi vim nvim emacs less more man builtin source . coproc chroot unshare nsenter bwrap
	firejail flock time ionice taskset screen tmux at batch crontab entr watchexec rlwrap script env-cmd dotenv direnv`)

var escalations = []string{"sudo", "doas", "su", "pkexec", "runuser", "gosu"}

// tooMuch says why words do not describe a command, or "".
func tooMuch(words []string, f form) string {
	name := words[0][strings.LastIndexByte(words[0], '/')+1:]
	plain := strings.TrimRight(strings.ToLower(name), "0123456789.")
	line := strings.Join(words, " ") + " "
	i := slices.IndexFunc(runners, func(p string) bool { return strings.HasPrefix(line, p+" ") })
	switch {
	case slices.Contains(escalations, name):
		return fmt.Sprintf("%q gives more rights than the user has, which is asked about each time", name)
	case i >= 0 && f != exact:
		return fmt.Sprintf("%q runs or sets up whatever follows; allow the whole command", runners[i])
	case slices.Contains(families, name):
		if f != exact && (len(words) == 1 || strings.HasPrefix(words[1], "-")) {
			return fmt.Sprintf("a bare %q allows all that it can do; name a subcommand", name)
		}
		return ""
	case !policy.RunsAnything(name) && !policy.RunsAnything(plain) && !slices.Contains(interpreters, plain):
		return ""
	case f != exact:
		return fmt.Sprintf("%q runs what it is given; allow the whole command line", name)
	}
	if i := slices.IndexFunc(words[1:], func(w string) bool { return w[0] == '-' && w != "-m" }); i >= 0 || len(words) == 1 {
		return fmt.Sprintf("%q runs what it is given, and the line does not say what that is", name)
	}
	return ""
}

// strictPattern makes the pattern of a rule that asks or denies, and a line
// that it must match, if the text is one. It matches at least the same as the
// text.
func strictPattern(text string, f form) (pattern, example string, err error) {
	words := strings.Fields(text)
	if len(words) == 0 || len(words) == 1 && strings.Trim(words[0], "*") == "" {
		return "*", "", nil
	}
	if !strings.Contains(text, "*") {
		example = strings.Join(words, " ")
	}
	if f == stem {
		words[len(words)-1] += "*"
	}
	out, open := []string{words[0][strings.LastIndexByte(words[0], '/')+1:]}, f != exact
	wild := strings.Contains(words[0], "*")
	for i, w := range words {
		if !plainWord(strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(w, "!"), ",", ""), "*", "x")) || i == 0 && strings.ContainsAny(w, "=,!") {
			return "", "", fmt.Errorf("the word %q has characters that a shell reads; a rule names plain words", w)
		}
		if i == 0 {
			continue
		}
		to := loosened(w, wild)
		open = open || to != w
		wild = wild || strings.Contains(w, "*")
		if to != "" {
			out = append(out, to)
		}
	}
	if open && out[0] != "*" || len(out) > 1 && open {
		out = append(out, "*")
	}
	return strings.Join(out, " "), example, nil
}

// loosened is a word as a condition that holds at least where the word stands:
// behind a wildcard, at any place.
func loosened(w string, behindWild bool) string {
	switch {
	case w == "--" || strings.Trim(w, "*") == "":
		return ""
	case w[0] == '-':
		name, _, _ := strings.Cut(w, "=")
		return strings.ReplaceAll(name, ",", "*")
	}
	if strings.HasPrefix(w, "!") {
		w = "*" + w[1:]
	}
	if w = strings.ReplaceAll(w, ",", "*"); behindWild && !strings.Contains(w, "*") {
		w += "*"
	}
	return w
}
