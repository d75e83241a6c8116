// Package clients says how the tests drive real coding agents: where npm has
// put them, the settings that make a test's model theirs, and how they run
// without a human and without asking.
package clients

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// A Client is a coding agent of npm's.
type Client struct {
	Name     string            // its folder, its program and its name in internal/agents
	Package  string            // of npm
	Settings string            // its own settings below HOME, a file of JSON or TOML
	Key      string            // variable of the key of its model
	Place    string            // of the key in a request, as `bawn secret bind` says it
	Header   string            // the same as the server sees it; %s is the key
	Closed   bool              // does nothing where its hooks die
	Prefixed bool              // in a session its shells are Bawn's too, whatever its hooks do
	text     string            // of Settings
	files    map[string]string // further ones below HOME
	env      []string
	args     []string
	free     []string // arguments with which it asks nobody
	editor   []string // with which it speaks the Agent Client Protocol; nil if it does not
	front    string   // the program, of a package of its own, that does it for the agent
	told     string   // variable that tells that program where the agent's is
	Free     []string // variables with which it asks its editor nothing, where it could do nothing otherwise
	Keeps    bool     // its own tool for files writes nothing outside of the workspace
	asking   string   // goes into its settings, where it would ask an editor nothing otherwise
}

// place stands for the model's address in texts and variables.
const place = "$MODEL"

// Model is the name of the model that agents are told.
const Model = "scripted"

// All are the agents that run here.
func All() []Client {
	return []Client{claude, codex, opencode, gemini, qwen, copilot, pi}
}

// Installed is the directory where test/agent/install has put them, or "".
func Installed() string { return os.Getenv(testenv.AgentsVariable) }

// Program is the agent's own.
func (c Client) Program() string {
	return filepath.Join(Installed(), c.Name, "node_modules/.bin", c.Name)
}

// Manifest is the package.json of the package that is installed.
func (c Client) Manifest() string {
	return filepath.Join(Installed(), c.Name, "node_modules", c.Package, "package.json")
}

// Command is the agent with a task, without a human. It asks nobody about what
// it does if free; otherwise it does what it does where nobody answers.
func (c Client) Command(free bool) []string { return c.CommandFor(task, free) }

// CommandFor is [Client.Command] with a prompt.
func (c Client) CommandFor(prompt string, free bool) []string {
	argv := []string{c.Program()}
	for _, a := range c.args {
		switch {
		case a == "" && free:
			argv = append(argv, c.free...)
		case a == task:
			argv = append(argv, prompt)
		case a != "":
			argv = append(argv, a)
		}
	}
	return argv
}

// Editor is the agent as an editor starts it; nil if it speaks the Agent Client
// Protocol in no way.
func (c Client) Editor() []string {
	switch {
	case c.front != "":
		return append([]string{filepath.Join(Installed(), "acp-"+c.Name, "node_modules/.bin", c.front)}, c.editor...)
	case c.editor == nil:
		return nil
	}
	return append([]string{c.Program()}, c.editor...)
}

// Seat are the variables that it needs before an editor, beside the others.
func (c Client) Seat() []string {
	if c.told == "" {
		return nil
	}
	return []string{c.told + "=" + c.Program()}
}

// Asking are settings with which it asks its editor before it does anything.
func (c Client) Asking(model string) string {
	return strings.Replace(c.SettingsText(model), "{", "{"+c.asking, 1)
}

// SettingsText is what its settings hold, with the model at the address, such
// as http://127.0.0.1:4000.
func (c Client) SettingsText(model string) string {
	return strings.ReplaceAll(c.text, place, model)
}

// Environment are the variables that it needs, but for the key's.
func (c Client) Environment(model string) []string {
	var env []string
	for _, v := range c.env {
		env = append(env, strings.ReplaceAll(v, place, model))
	}
	return env
}

// Prepare writes the agent's settings below a home directory.
func (c Client) Prepare(home, model string) error {
	err := put(filepath.Join(home, c.Settings), c.SettingsText(model))
	for name, text := range c.files {
		err = errors.Join(err, put(filepath.Join(home, name), text))
	}
	return err
}

func put(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}
