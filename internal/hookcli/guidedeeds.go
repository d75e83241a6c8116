package hookcli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/hooksetup"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/places"
)

// The steps of the guide that write no file: other programs do them, and only after an
// answer of a person. --yes does not count as one.

// The kinds of hooksetup.Deed.
const (
	deedSecret = "secret"
	deedPage   = "page"
)

// pageAddress is where the guide has the page served: this machine alone reaches it.
const pageAddress = "127.0.0.1:7443"

// keys offers to keep the keys that are set outside of sessions. Whether a variable is
// set is all that is looked at before the answer.
func (g *guide) keys() error {
	g.head("Keys stay outside of sessions, which get a placeholder")
	set := g.keysSet()
	if len(set) == 0 {
		g.say("", "no agent's key is set in a variable here; \"bawn secret set NAME\" asks for a value, \"bawn secret bind NAME\" says where it goes")
		return nil
	}
	for _, name := range set {
		secret := secretName(name)
		g.say(name+" is set: ", "the vault would keep its value as the secret \""+secret+"\", for requests to its service only. The variable stays as it is")
		kept, err := g.asked(hooksetup.Deed{Kind: deedSecret, Name: secret}, "read it and keep it?", "secret", "import", "--env", name, "--yes")
		if err != nil {
			return err
		}
		if kept {
			g.say("a session gets it with: ", "bawn run --secret "+secret+" -- "+g.example())
		}
	}
	return nil
}

// keysSet are variables that are set and hold keys of the agents that are installed,
// or known where none is.
func (g *guide) keysSet() (names []string) {
	who := g.who
	if len(who) == 0 {
		who = agents.All()
	}
	for _, a := range who {
		for _, name := range a.Environment.Keys {
			if g.env.Getenv(name) != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// secretName is the name that "bawn secret import" gives to a variable's value.
func secretName(variable string) string {
	return strings.ReplaceAll(strings.ToLower(variable), "_", "-")
}

// page offers to serve the page.
func (g *guide) page() error {
	g.head("Answer questions in a browser, or from your phone")
	g.say("", "in the background, at https://localhost:7443, until \"bawn serve --stop\"; for a phone see docs/relay.md")
	was := ""
	if _, err := os.Lstat(g.relayStopped()); err == nil {
		was = wasStopped
	}
	served, err := g.asked(hooksetup.Deed{Kind: deedPage, Name: was}, "serve the page?", "serve", "-d", "--listen", pageAddress)
	if err != nil || !served {
		return err
	}
	return launch.Call(g.env, "pair")
}

// wasStopped is the Name of deedPage where the user had stopped the relay before.
const wasStopped = "stopped"

// relayStopped is the file that keeps sessions from starting a relay.
func (g *guide) relayStopped() string { return filepath.Join(g.setup.State, places.RelayStopped) }

// asked runs a verb of bawnd's if a person says so, and notes that for an undo.
func (g *guide) asked(d hooksetup.Deed, question, verb string, words ...string) (bool, error) {
	done, err := g.setup.Noted()
	switch {
	case err != nil:
		return false, initError(err)
	case d.Kind == deedSecret && slices.Contains(done, d):
		g.say("", "it is kept already")
		return false, nil
	case g.flags.dryRun || g.flags.yes:
		g.say("left to you: ", "bawn "+strings.Join(append([]string{verb}, words...), " "))
		return false, nil
	}
	yes, err := g.answer(question)
	if err != nil || !yes {
		g.say("", "skipped")
		return false, err
	}
	if err := launch.Call(g.env, verb, words...); err != nil {
		return false, err
	}
	return true, initError(g.setup.Note(d))
}

// takeBackDeeds asks about each thing that the guide has done beside files.
func (g *guide) takeBackDeeds(deeds []hooksetup.Deed) (failed error) {
	for _, d := range deeds {
		failed = errors.Join(failed, g.takeBackDeed(d))
	}
	return failed
}

func (g *guide) takeBackDeed(d hooksetup.Deed) error {
	step, words, question := stepPage, []string{"serve", "--stop"}, "stop the page, and the relay that serves it?"
	if d.Kind == deedSecret {
		step, words = stepKeys, []string{"secret", "rm", d.Name}
		question = "remove the secret \"" + d.Name + "\"? Its value is gone then, unless you have it elsewhere"
	}
	if g.skips(step) {
		return nil
	}
	if g.flags.dryRun || g.flags.yes {
		g.say("stays: ", "bawn "+strings.Join(words, " "))
		return nil
	}
	yes, err := g.answer(question)
	if err != nil || !yes {
		return err
	}
	if err := launch.Call(g.env, words[0], words[1:]...); err != nil {
		return err
	}
	if err := g.setup.Forget(d); err != nil || d != (hooksetup.Deed{Kind: deedPage}) {
		return initError(err)
	}
	if err := os.Remove(g.relayStopped()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return initError(err)
	}
	g.say("", "as before init, a session starts a relay without a page when it needs one")
	return nil
}
