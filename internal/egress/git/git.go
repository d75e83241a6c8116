// Package git reads from the wire what a git request would do: which repository
// it reads or writes, which refs it moves from where to where, and whether that
// discards history. It looks at requests of smart HTTP, dumb HTTP, LFS and SSH,
// and never at a command line of the guest's.
//
// Anything that it can't read exactly as git's own server reads it is an error,
// and an error is a refusal: a push could hide behind a second reading.
package git

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Kind says which way an operation moves objects. The zero Kind, None, is not
// git.
type Kind uint8

const (
	None  Kind = iota // not git
	Fetch             // reads a repository
	Push              // writes one
)

// String returns "none", "fetch" or "push".
func (k Kind) String() string {
	switch k {
	case Fetch:
		return "fetch"
	case Push:
		return "push"
	}
	return "none"
}

// An Operation is the effect of a request.
type Operation struct {
	Kind Kind

	// Repo is the path of the repository without leading slash and without
	// ".git": "owner/name". Letters keep their case.
	Repo string

	// User is whom an operation over SSH is made as; "" over HTTP.
	User string

	// Rooted says that the path over SSH begins with a slash. Forges do not
	// care; other servers take it from their root then, and else from the user's
	// home.
	Rooted bool

	// Discovery marks the question that comes before a push: it lists refs
	// and changes nothing.
	Discovery bool

	// LFS marks a request to the store of large files. An upload moves no ref.
	LFS bool

	// Updates are the refs that a push would move, in the order sent.
	Updates []Update

	// Options are the push options, which a server may take for orders: open
	// a merge request, merge it, skip a check.
	Options []string

	// Complete says that all of the push's commands have been read, so that
	// Updates and Options are all there are. It is false for a push of which
	// only the address is known, and says nothing about a fetch.
	Complete bool
}

// An Update is one command of a push (gitprotocol-pack(5)): Ref moves from
// Old to New. Ids are in lower-case hexadecimal, 40 or 64 digits, all zero for
// "no such ref".
type Update struct {
	Old, New, Ref string

	// FastForward says that New was shown to descend from Old, by the commits
	// that the guest sent. It is never true by default.
	FastForward bool

	// Why says why it could not be shown.
	Why string
}

// Create reports whether the ref must not exist before. The server compares Old
// with its own value, so an existing ref is not overwritten.
func (u Update) Create() bool { return zeroID(u.Old) && !zeroID(u.New) }

// Delete reports whether the ref would be gone afterwards.
func (u Update) Delete() bool { return zeroID(u.New) }

// Force reports whether the update may throw history away: it deletes, it
// moves a tag, or New was not shown to descend from Old.
func (u Update) Force() bool {
	switch {
	case u.Delete():
		return true
	case u.Create():
		return false
	}
	return !u.FastForward || u.tag()
}

func (u Update) tag() bool { return strings.HasPrefix(u.Ref, "refs/tags/") }

func zeroID(id string) bool { return strings.Trim(id, "0") == "" }

// A Rule permits operations on the repositories of one host. In Repo and Ref,
// "*" stands for any part of one segment and "**" for any number of segments;
// letters are compared exactly. The zero Rule permits nothing.
type Rule struct {
	User    string // over SSH; "" is "git"
	Rooted  bool   // Repo is meant from the server's root: over SSH, with a slash
	Push    bool   // false: fetch only. A rule for push permits fetch as well
	Repo    string // "bawn-dev/*"; "" matches no repository
	Ref     string // "refs/heads/agent/**"; "" matches no ref
	Options bool   // push options may be sent
}

// names reports whether the rule is about an operation's repository. One about
// all of them does not care where their paths begin.
func (r Rule) names(op Operation) bool {
	switch {
	case !matchRepo(r.Repo, op.Repo):
		return false
	case op.User == "":
		return !r.Rooted
	}
	return cmp.Or(r.User, "git") == op.User && (r.Rooted == op.Rooted || r.all())
}

func (r Rule) all() bool { return r.Repo == "**" && !r.Rooted }

// Unrooted returns a fetch or push over SSH as rules mean it that name its
// repository without a slash in front: on a forge that is the same one. If a
// rule names it with the slash, or only a rule about all names it, it stays
// unchanged.
func Unrooted(op Operation, rules []Rule) Operation {
	other := op
	other.Rooted = false
	about := func(op Operation) bool {
		return slices.ContainsFunc(rules, func(r Rule) bool { return !r.all() && r.names(op) })
	}
	if !about(op) && about(other) {
		return other
	}
	return op
}

// place says what of an operation over SSH a rule has to name beside the
// repository.
func (op Operation) place() string {
	text := ""
	if op.User != "" && op.User != "git" {
		text = fmt.Sprintf(" as the user %q", op.User)
	}
	if op.Rooted {
		text += " from the server's root (\"/" + op.Repo + "\")"
	}
	return text
}

// Allow says whether rules permit op, and why not: the reason is for people
// and agents. A push needs, for every update, a rule that matches repository
// and ref, and no update may delete, force or move a tag.
func Allow(op Operation, rules []Rule) (ok bool, reason string) {
	reason = refusal(op, rules)
	return reason == "", reason
}

func refusal(op Operation, rules []Rule) string {
	reads := slices.ContainsFunc(rules, func(r Rule) bool { return r.names(op) })
	writes := slices.ContainsFunc(rules, func(r Rule) bool { return r.Push && r.names(op) })
	switch {
	case op.Kind == Fetch && reads, op.Kind == Push && writes && (op.Discovery || op.LFS):
		return ""
	case op.Kind == Fetch && len(rules) == 0, op.Kind == Push && len(rules) == 0:
		return fmt.Sprintf("no git rule permits anything here; %s of %q needs one", op.Kind, op.Repo)
	case op.Kind == Fetch:
		return fmt.Sprintf("no git rule permits fetching %q%s", op.Repo, op.place())
	case op.Kind != Push:
		return "this is not a git request"
	case !writes:
		return fmt.Sprintf("no git rule permits pushing to %q%s", op.Repo, op.place())
	case !op.Complete:
		return "the push has not been read to its end"
	}
	return refuseUpdates(op, rules)
}

// refuseUpdates looks at refs before force: a ref that no rule names gets that
// answer, whatever became of the proof.
func refuseUpdates(op Operation, rules []Rule) string {
	for _, u := range op.Updates {
		if reason := refuseUpdate(op, u, rules); reason != "" {
			return reason
		}
	}
	options := slices.ContainsFunc(rules, func(r Rule) bool { return r.Push && r.Options && r.names(op) })
	if len(op.Options) > 0 && !options {
		return fmt.Sprintf("push options are orders to the server and no rule permits them: %q", op.Options)
	}
	return ""
}

func refuseUpdate(op Operation, u Update, rules []Rule) string {
	permits := func(r Rule) bool { return r.Push && r.names(op) && matchRef(r.Ref, u.Ref) }
	switch {
	case CheckRef(u.Ref) != nil:
		return CheckRef(u.Ref).Error()
	case !slices.ContainsFunc(rules, permits):
		return fmt.Sprintf("no git rule permits pushing to %q of %q%s", u.Ref, op.Repo, op.place())
	}
	return destroys(u)
}

// Never says why no rule and no human permits op, or "". It forbids a push that
// is not fully known, that deletes or forces, that moves a tag, or that has push
// options for the server.
func Never(op Operation) string {
	switch {
	case op.Kind != Push || op.Discovery || op.LFS:
		return ""
	case !op.Complete:
		return "the push has not been read to its end"
	case len(op.Options) > 0:
		return fmt.Sprintf("push options are orders to the server and no rule permits them: %q", op.Options)
	}
	for _, u := range op.Updates {
		if err := CheckRef(u.Ref); err != nil {
			return err.Error()
		}
		if why := destroys(u); why != "" {
			return why
		}
	}
	return ""
}

// destroys says why an update may throw history away.
func destroys(u Update) string {
	switch {
	case u.Delete():
		return fmt.Sprintf("the push would delete %q; deleting is never permitted", u.Ref)
	case u.Force() && u.tag():
		return fmt.Sprintf("the push would move the tag %q; tags are made, never moved", u.Ref)
	case u.Force():
		return fmt.Sprintf("the push to %q may be a force push: %s; merge or rebase onto %.12s, or push to a new branch", u.Ref, why(u), u.Old)
	}
	return ""
}

func why(u Update) string {
	if u.Why == "" {
		return "nobody has shown that the new commit descends from the old one"
	}
	return u.Why
}
