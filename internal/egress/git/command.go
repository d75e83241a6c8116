package git

import (
	"fmt"
	"strings"
)

// A Command is the command that a git client asks an SSH server to execute.
type Command struct {
	Service string // "git-upload-pack", "git-receive-pack", "git-upload-archive" or "git-lfs-authenticate"
	Path    string // as the client wrote it, "/owner/name.git"
	Operation
}

const lfsAuthenticate = "git-lfs-authenticate"

// maxCommand bounds the text of a command.
const maxCommand = 2048

// ParseCommand reads the commands that git and git-lfs send over SSH and
// refuses every other text: a server hands it to a shell. A push over SSH is
// known by its repository only; [Inspector.Push] reads the rest.
func ParseCommand(text string) (Command, error) {
	bad := func(why string) (Command, error) {
		return Command{}, fmt.Errorf("command %.200q: %s; want \"git-upload-pack 'path'\" or another one that git sends", text, why)
	}
	if len(text) > maxCommand {
		return bad("it is too long")
	}
	service, words, ok := strings.Cut(text, " ")
	if rest, ok := strings.CutPrefix(text, "git "); ok { // "git upload-pack" does the same
		service, words, _ = strings.Cut(rest, " ")
		service = "git-" + service
	}
	path, rest, quoted := unquote(words)
	if !ok || !quoted {
		return bad("it has no path in quotes as git makes them")
	}
	name, err := repoName(strings.TrimSuffix(path, "/"))
	if err != nil {
		return Command{}, err
	}
	c := Command{Service: service, Path: path, Operation: Operation{Repo: name, Rooted: path[0] == '/'}}
	if !c.classify(rest) {
		return bad("bawn does not know it")
	}
	return c, nil
}

// classify fills in the kind; rest is the text after the path.
func (c *Command) classify(rest string) bool {
	switch c.Service + rest {
	case uploadPack, uploadArchive:
		c.Kind = Fetch
	case receivePack:
		c.Kind, c.Discovery = Push, true
	case lfsAuthenticate + " download":
		c.Kind, c.LFS = Fetch, true
	case lfsAuthenticate + " upload":
		c.Kind, c.LFS = Push, true
	default:
		return false
	}
	return true
}

// As returns the command for the repository as op names it.
func (c Command) As(op Operation) Command {
	c.Operation = op
	if !op.Rooted {
		c.Path = strings.TrimPrefix(c.Path, "/")
	}
	return c
}

// String writes the command anew, from what was read.
func (c Command) String() string {
	text := c.Service + " '" + c.Path + "'"
	switch {
	case c.Service != lfsAuthenticate:
		return text
	case c.Kind == Push:
		return text + " upload"
	}
	return text + " download"
}

// unquote reads one word as git's sq_quote_buf writes it, in single quotes,
// or, as git-lfs writes it, without any. Quotes and exclamation marks inside,
// which git would escape, are not permitted in paths anyway.
func unquote(s string) (word, rest string, ok bool) {
	if inner, found := strings.CutPrefix(s, "'"); found {
		word, rest, ok = strings.Cut(inner, "'")
		return word, rest, ok && word != "" && (rest == "" || rest[0] == ' ')
	}
	word, rest, ok = strings.Cut(s, " ")
	if ok {
		rest = " " + rest
	}
	return word, rest, word != "" && !strings.ContainsAny(word, `'"\`)
}
