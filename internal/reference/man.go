package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/verb"
)

// WriteMan writes manual pages into a directory: bawn.1, which lists the commands, and
// one for each command with all that are below it. date and version are what they say.
func WriteMan(dir, version string, date time.Time) error {
	root := Tree()
	pages := map[string]string{"bawn.1": manRoot(root)}
	for _, s := range sections(root) {
		for _, c := range s.commands {
			pages["bawn-"+c.Name()+".1"] = manCommand(c)
		}
	}
	for name, text := range pages {
		title := strings.ToUpper(strings.TrimSuffix(name, ".1"))
		head := fmt.Sprintf(".TH %q 1 %q %q \"Bawn\"\n.nh\n.ad l\n", title, date.UTC().Format("2006-01-02"), "bawn "+version)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(head+text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func manRoot(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".SH NAME\nbawn \\- %s\n.SH SYNOPSIS\n.B bawn\n.I COMMAND\n[\\fIARGUMENT\\fR ...]\n", lower(roff(root.Short)))
	b.WriteString(".SH DESCRIPTION\n" + roff("Bawn runs AI coding agents as guests on your machine: in a sandbox that the kernel enforces, with a network that opens by name, "+
		"without your credentials, and with a log that shows tampering. Each command has a manual page of its own, for example bawn-run(1).") + "\n")
	for _, s := range sections(root) {
		fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(roff(s.title)))
		for _, c := range s.commands {
			fmt.Fprintf(&b, ".TP\n\\fBbawn\\-%s\\fR(1)\n%s.\n", roff(c.Name()), roff(c.Short))
		}
	}
	b.WriteString(".SH EXAMPLES\n" + manExample(root.Example) + manEnd())
	return b.String()
}

func manCommand(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".SH NAME\nbawn\\-%s \\- %s\n.SH SYNOPSIS\n", roff(c.Name()), lower(roff(c.Short)))
	all := below(c)
	for _, c := range all {
		if c.Runnable() || len(all) == 1 {
			fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(usage(c)))
		}
	}
	for i, c := range all {
		if i == 0 {
			b.WriteString(".SH DESCRIPTION\n")
		} else {
			fmt.Fprintf(&b, ".SS %s\n%s.\n.PP\n", roff(c.CommandPath()), roff(c.Short))
		}
		manBody(&b, c)
	}
	b.WriteString(manEnd())
	return b.String()
}

// manBody is what a command does, its flags and examples.
func manBody(b *strings.Builder, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	b.WriteString(manText(text))
	for _, f := range flags(c) {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s.\n", roff(flagForm(f)), roff(strings.TrimSuffix(flagText(f), ".")))
	}
	if c.Example != "" {
		b.WriteString(".PP\nExamples:\n" + manExample(c.Example))
	}
}

// manText writes paragraphs; lines that begin with a blank stay as they are.
func manText(s string) string {
	var b strings.Builder
	for _, paragraph := range strings.Split(strings.TrimSpace(s), "\n\n") {
		if strings.HasPrefix(paragraph, " ") {
			b.WriteString(manExample(paragraph))
			continue
		}
		b.WriteString(roff(paragraph) + "\n.PP\n")
	}
	return b.String()
}

func manExample(s string) string { return ".PP\n.RS 2\n.nf\n" + roff(unindent(s)) + "\n.fi\n.RE\n" }

// manEnd is what every page says: exit codes, files, and where to read on.
func manEnd() string {
	var b strings.Builder
	b.WriteString(".SH EXIT STATUS\n")
	for _, c := range verb.ExitCodes() {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s.\n", roff(c.Code), roff(c.Meaning))
	}
	b.WriteString(".SH FILES\n")
	for _, f := range [][2]string{
		{"~/.config/bawn/config.toml", "your configuration (XDG_CONFIG_HOME); \"bawn config init\" writes a first one"},
		{"/etc/bawn/config.toml", "that of whoever manages the machine"},
		{".bawn/config.toml", "that of a project, which may only narrow"},
		{"~/.local/state/bawn", "the log, checkpoints and answers (XDG_STATE_HOME)"},
	} {
		fmt.Fprintf(&b, ".TP\n.I %s\n%s.\n", roff(f[0]), roff(f[1]))
	}
	b.WriteString(".SH SEE ALSO\n.BR bawn (1),\nhttps://github.com/bawn\\-dev/bawn\n")
	return b.String()
}

// roff escapes a text for troff: backslashes, hyphens, and what would be a request at
// the beginning of a line.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\t", "    ", "…", "...", "~", `\(ti`, "^", `\(ha`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// lower begins a NAME line as manual pages do.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// WriteCompletions writes what bash, zsh and fish read to complete command lines, each
// into a directory under the name that the shell looks for.
func WriteCompletions(bash, zsh, fish string) error {
	root := Tree()
	for path, write := range map[string]func(string) error{
		filepath.Join(bash, "bawn"):      func(p string) error { return root.GenBashCompletionFileV2(p, true) },
		filepath.Join(zsh, "_bawn"):      root.GenZshCompletionFile,
		filepath.Join(fish, "bawn.fish"): func(p string) error { return root.GenFishCompletionFile(p, true) },
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := write(path); err != nil {
			return err
		}
	}
	return nil
}
