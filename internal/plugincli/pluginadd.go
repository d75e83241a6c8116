package plugincli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// maxManifestFile bounds the size of a manifest or an agent's settings, in
// bytes.
const maxManifestFile = 1 << 20

// pluginFlags make a manifest without a file.
type pluginFlags struct {
	name         string
	manifest     plugin.Manifest
	yes, replace bool
	env          []string
}

func newPluginAdd(e *launch.Env) *cobra.Command {
	f := &pluginFlags{}
	c := &cobra.Command{
		Use:   "add [FILE] [flags] [-- ARG...]",
		Short: "Add a plugin, after showing what it may do",
		Long: `Add a plugin: show in words what its manifest lets it do, ask, and keep the
manifest. It comes from a file, or is made of flags. Nothing is started by this;
"bawn plugin pin" starts it once, as a guest, and shows its tools.

A manifest is TOML with the keys name, kind, version, about, run (command, npx,
uvx, go, image, args), files (read, write), hosts, secrets, env, limits (memory,
pids, cpu, time, result, calls_at_once), tools (allow, ask, deny), arguments and
hook (kinds, seconds).`,
		Example: "  bawn plugin add github.toml\n" +
			"  bawn plugin add --npx '@modelcontextprotocol/server-filesystem@2026.8.31' --read . -- .\n" +
			"  bawn plugin add --name notes --write ~/notes --allow 'list_*' -- notes-server --stdio",
		RunE: func(_ *cobra.Command, args []string) error { return f.add(e, args) },
	}
	fl := c.Flags()
	fl.StringVar(&f.name, "name", "", "name of the plugin (default: from the file or the package)")
	fl.StringVar(&f.manifest.Run.NPX, "npx", "", "npm `package` with its version, such as server@1.2.3")
	fl.StringVar(&f.manifest.Run.UVX, "uvx", "", "Python `package` with its version, such as server@1.2.3")
	fl.StringVar(&f.manifest.Run.Go, "go", "", "Go `package` with its version, such as example.org/server@v1.2.3")
	fl.StringArrayVar(&f.manifest.Files.Read, "read", nil, "`path` it may read, . for the project (repeatable)")
	fl.StringArrayVar(&f.manifest.Files.Write, "write", nil, "`path` it may change, . for the project (repeatable)")
	fl.StringArrayVar(&f.manifest.Hosts, "host", nil, "`host` it may connect to (repeatable)")
	fl.StringArrayVar(&f.manifest.Secrets, "secret", nil, "`secret` of the vault that may be put into its requests (repeatable)")
	fl.StringArrayVar(&f.env, "env", nil, "variable it gets, `NAME=value` (repeatable)")
	fl.StringArrayVar(&f.manifest.Tools.Allow, "allow", nil, "tools called without asking, a `glob` (repeatable)")
	fl.StringArrayVar(&f.manifest.Tools.Ask, "ask", nil, "tools that ask, a `glob` (repeatable)")
	fl.StringArrayVar(&f.manifest.Tools.Deny, "deny", nil, "tools that are never called, a `glob` (repeatable)")
	fl.BoolVarP(&f.yes, "yes", "y", false, "agree to what is shown without being asked")
	fl.BoolVar(&f.replace, "replace", false, "replace the manifest of that name, showing what changes")
	return c
}

func (f *pluginFlags) add(e *launch.Env, args []string) error {
	d, err := pluginDirs(e)
	if err != nil {
		return err
	}
	m, text, err := f.read(e, args)
	if err != nil {
		return err
	}
	if err := f.unlike(d, m.Name); err != nil {
		return err
	}
	old, err := f.old(d, m.Name)
	if err != nil {
		return err
	}
	if err := agreeTo(e, m, old, f.yes); err != nil {
		return err
	}
	if err := os.MkdirAll(d.Manifests, 0o700); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	if err := atomicfile.Write(filepath.Join(d.Manifests, m.Name+".toml"), text, 0o600); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	if m.Kind == plugin.Hook {
		_, err = fmt.Fprintf(e.Stdout, "added %s; sessions that start from now on ask it\n", m.Name)
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "added %s; \"bawn plugin pin %s\" shows its tools and pins them\n", m.Name, m.Name)
	return err
}

// read takes the manifest of the file, or makes one of the flags. A single
// argument without any other flag that says what runs is a file.
func (f *pluginFlags) read(e *launch.Env, args []string) (*plugin.Manifest, []byte, error) {
	m := &f.manifest
	packaged := m.Run.NPX != "" || m.Run.UVX != "" || m.Run.Go != ""
	if len(args) == 1 && !packaged && f.name == "" {
		return manifestOf(e, args[0], "")
	}
	if packaged {
		m.Run.Args = args
	} else {
		m.Run.Command = args
	}
	m.Kind = plugin.Server
	m.Name = f.name
	if m.Name == "" {
		m.Name = nameOfPackage(m.Run.NPX + m.Run.UVX + m.Run.Go)
	}
	m.Env = map[string]string{}
	for _, kv := range f.env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, nil, verb.Usage("say --env NAME=value", "--env %q has no value", kv)
		}
		m.Env[name] = value
	}
	text, err := m.Text()
	if err != nil {
		return nil, nil, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	read, err := plugin.Parse(flagsFile, m.Name, text)
	if err != nil {
		return nil, nil, verb.Usage("for example: bawn plugin add --npx 'server@1.2.3' --read .", "%s", ofFlags(err))
	}
	return read, text, nil
}

// ofFlags translates errors to flags: the lines are those of a generated text.
func ofFlags(err error) string {
	var out []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if place, rest, ok := strings.Cut(line, ": "); ok && (place == flagsFile || strings.HasPrefix(place, flagsFile+":")) {
			line = rest
		}
		if key, rest, ok := strings.Cut(line, ": "); ok && !strings.Contains(key, " ") {
			_, name, _ := strings.Cut(key, ".")
			line = "--" + map[bool]string{true: strings.TrimSuffix(key, "s"), false: name}[name == ""] + ": " + rest
			if key == "run.command" || key == "run" {
				line = "the command: " + rest
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

// flagsFile stands for the name of a manifest that is made of flags.
const flagsFile = "the flags"

// nameOfPackage is the last part of a package's name, without its version and
// what every other one begins with.
func nameOfPackage(pkg string) string {
	at := strings.LastIndex(pkg, "@")
	if at > 0 {
		pkg = pkg[:at]
	}
	pkg, _, _ = strings.Cut(pkg, "==")
	pkg = strings.ToLower(pkg[strings.LastIndexByte(pkg, '/')+1:])
	for _, s := range []string{"mcp-server-", "server-", "mcp-"} {
		pkg = strings.TrimPrefix(pkg, s)
	}
	return strings.NewReplacer("_", "-", ".", "-").Replace(pkg)
}

// manifestOf reads a manifest that lies anywhere; "-" is standard input, which
// must say its name.
func manifestOf(e *launch.Env, file, name string) (*plugin.Manifest, []byte, error) {
	text, err := readInput(e, file)
	if err != nil {
		return nil, nil, verb.Usage("name a manifest in TOML", "%w", err)
	}
	if name == "" {
		name = plugin.NameIn(text)
	}
	if name == "" && file != "-" {
		name = strings.TrimSuffix(filepath.Base(file), ".toml")
	}
	m, err := plugin.Parse(file, name, text)
	if err != nil {
		return nil, nil, verb.Usage("docs/plugins.md describes the format", "%w", err)
	}
	return m, text, nil
}

func readInput(e *launch.Env, file string) ([]byte, error) {
	if file == "-" {
		return atomicfile.ReadOpen(e.Stdin, maxManifestFile)
	}
	return atomicfile.Read(settings.Absolute(&e.World, file), maxManifestFile)
}

// unlike refuses a name that looks like that of another plugin.
func (f *pluginFlags) unlike(d plugin.Dirs, name string) error {
	all, _ := plugin.Load(d.Manifests) // one that is broken has a name for its file, too
	for _, m := range all {
		if m.Name != name && plugin.Looks(m.Name) == plugin.Looks(name) {
			return verb.Usage("choose another with --name, or name in the file", "the name %q looks like that of the plugin %q", name, m.Name)
		}
	}
	return nil
}

// old is the manifest that is to be replaced, or nil if the plugin has no manifest
// yet.
func (f *pluginFlags) old(d plugin.Dirs, name string) (*plugin.Manifest, error) {
	if !isThere(filepath.Join(d.Manifests, name+".toml")) {
		return nil, nil
	}
	if !f.replace {
		return nil, verb.Usage("say --replace to see what would change, and agree to it", "there is a plugin %q already", name)
	}
	old, _ := plugin.Read(d.Manifests, name) // an unreadable file has nothing to compare with
	return old, nil
}

// agreeTo shows a plugin's rights and asks the human.
func agreeTo(e *launch.Env, m, old *plugin.Manifest, yes bool) error {
	fmt.Fprintf(e.Stderr, "The plugin %s\n", m.Name)
	var was []string
	if old != nil {
		was = old.Words()
	}
	for _, w := range m.Words() {
		fmt.Fprintln(e.Stderr, "  "+signIf(old != nil && !slices.Contains(was, w), "+ ")+w)
	}
	for _, w := range was {
		if !slices.Contains(m.Words(), w) {
			fmt.Fprintln(e.Stderr, "  - "+w)
		}
	}
	return Confirm(e, "Add it?", yes)
}

func signIf(is bool, sign string) string {
	if is {
		return sign
	}
	return ""
}

// Confirm asks the human at the terminal, who must be the one to see the
// question and to type the answer. Without one nobody has agreed.
func Confirm(e *launch.Env, question string, yes bool) error {
	if yes {
		return nil
	}
	if !verb.IsTerminal(e.Stdin) || !verb.IsTerminal(e.Stderr) {
		return &verb.Error{Code: verb.ExitDenied, Err: fmt.Errorf("nobody is there to be asked"), Hint: "run it at a terminal, or agree with --yes"}
	}
	fmt.Fprintf(e.Stderr, "%s [yes/no] ", question)
	answer, err := bufio.NewReader(e.Stdin).ReadString('\n')
	if err != nil { // an end without an answer is no
		fmt.Fprintln(e.Stderr)
	}
	if strings.TrimSpace(strings.ToLower(answer)) != "yes" && strings.TrimSpace(strings.ToLower(answer)) != "y" {
		return &verb.Error{Code: verb.ExitDenied, Err: fmt.Errorf("you did not agree; nothing was changed")}
	}
	return nil
}
