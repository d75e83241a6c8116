package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

// A Report is an item that was not carried over, or not as it was meant, with
// its file.
type Report struct {
	File string `json:"file"`
	Item
}

// A Result is what several files come to together.
type Result struct {
	Rules    []bawn.Rule
	Settings []Setting
	Left     []Report
	origins  []Report // of the rules
	known    map[string]bool
}

// Merge puts imports together. Where they set a key differently the first
// stands. The resulting rules are tried: each allows, asks or denies its
// source's example, or is reported.
func Merge(list []*Import) (*Result, error) {
	res := &Result{known: map[string]bool{}}
	order := map[string]int{}
	for i, im := range list {
		res.take(im)
		order[im.File] = i
	}
	if err := res.try(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(res.Left, func(a, b Report) int {
		return cmp.Or(order[a.File]-order[b.File], a.Line-b.Line)
	})
	return res, nil
}

func (res *Result) take(im *Import) {
	for _, it := range im.Left {
		res.Left = append(res.Left, Report{im.File, it})
	}
	for _, s := range im.Settings {
		res.setting(im.File, s)
	}
	for _, r := range im.Rules {
		res.rule(im.File, r)
	}
}

// rule adds a rule that is not there yet, under an identity of its own.
func (res *Result) rule(file string, r bawn.Rule) {
	same := fmt.Sprintf("%d %q %d %d %v", r.Kind, r.Pattern, r.Verdict, r.Priority, r.Operations)
	if res.known[same] {
		return
	}
	line, _ := strconv.Atoi(r.ID[strings.LastIndexByte(r.ID, ':')+1:])
	for id, n := r.ID, 2; res.known[r.ID]; n++ {
		r.ID = id + "." + strconv.Itoa(n)
	}
	res.known[same], res.known[r.ID] = true, true
	res.Rules = append(res.Rules, r)
	res.origins = append(res.origins, Report{file, Item{Line: line}})
}

// setting adds a setting, or the entries of a list to it.
func (res *Result) setting(file string, s Setting) {
	i := slices.IndexFunc(res.Settings, func(o Setting) bool { return o.Key == s.Key })
	if i < 0 {
		res.Settings = append(res.Settings, s)
		return
	}
	o := &res.Settings[i]
	have, isList := o.Value.([]string)
	more, both := s.Value.([]string)
	switch {
	case isList && both:
		for _, e := range more {
			if !slices.Contains(have, e) {
				have = append(have, e)
			}
		}
		o.Value = have
	case o.Value != s.Value:
		res.Left = append(res.Left, Report{file, Item{s.Line, fmt.Sprintf("%s = %v", s.Key, s.Value), fmt.Sprintf("it is %v already", o.Value)}})
	}
}

// try reports the rules whose examples get another verdict than theirs.
func (res *Result) try() error {
	p, err := policy.New(res.Rules, policy.Options{})
	if err != nil {
		return err
	}
	for i, r := range res.Rules {
		if why := outcome(p, r); why != "" {
			o := res.origins[i]
			o.Text, o.Why = r.Verdict.String()+" "+r.Pattern, why
			res.Left = append(res.Left, o)
		}
	}
	return nil
}

// outcome puts a rule's first example to the policy, in the most usual
// session. It says why the decision is another than the rule's, unless another
// imported rule gave it.
func outcome(p *policy.Policy, r bawn.Rule) string {
	if len(r.Match) == 0 {
		return ""
	}
	// Only a rule over paths may name no operation.
	q := policy.Question{
		Action:    bawn.Action{Kind: r.Kind, Operation: append(r.Operations, bawn.Read)[0], Resource: r.Match[0], Dir: "/proj"},
		Workspace: "/proj", Home: "/home/user", Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate,
	}
	d := p.Decide(&q)
	switch {
	case d.Verdict == r.Verdict || d.Source == bawn.User:
		return ""
	case d.Verdict < r.Verdict:
		return fmt.Sprintf("the rule is there, but Bawn says %s to %q: %s", d.Verdict, r.Match[0], d.Reason)
	}
	return fmt.Sprintf("the rule is there, but does not reach %q, which is judged by what it runs: %s", r.Match[0], d.Verdict)
}

// Policy is the text of a policy file with the rules; what else was said is in
// it as comments.
func (res *Result) Policy() string {
	var b strings.Builder
	b.WriteString("# Written by \"bawn policy import\". Try it with \"bawn policy check\", and see what\n# it opens with \"bawn policy diff\".\n")
	for i, r := range res.Rules {
		o := res.origins[i]
		fmt.Fprintf(&b, "\n# %s, line %d\n", strings.Trim(quote(o.File), `"`), o.Line)
		WriteRule(&b, r)
	}
	if len(res.Settings) > 0 {
		b.WriteString("\n# For config.toml (\"bawn policy import --config\" prints it alone):\n")
		for line := range strings.Lines(res.Config()) {
			b.WriteString("#   " + line)
		}
	}
	return b.String()
}

// Config is the text of a configuration file with the settings.
func (res *Result) Config() string {
	var b strings.Builder
	for _, s := range res.Settings {
		b.WriteString(s.Key + " = " + s.text() + "\n")
	}
	return b.String()
}

// text is the value in TOML.
func (s Setting) text() string {
	switch v := s.Value.(type) {
	case string:
		return quote(v)
	case []string:
		return "[" + quoteList(v, strings.Clone) + "]"
	}
	return fmt.Sprint(s.Value)
}

// WriteRule writes a rule as a table of a policy file.
func WriteRule(b *strings.Builder, r bawn.Rule) {
	fmt.Fprintf(b, "[[rule]]\nid = %s\nkind = %s\n", quote(r.ID), quote(r.Kind.String()))
	writeList(b, "operations", r.Operations, bawn.Operation.String)
	fmt.Fprintf(b, "pattern = %s\nverdict = %s\npriority = %d\n", quote(r.Pattern), quote(r.Verdict.String()), r.Priority)
	if r.Reason != "" {
		fmt.Fprintf(b, "reason = %s\n", quote(r.Reason))
	}
	writeList(b, "match", r.Match, strings.Clone)
	writeList(b, "not_match", r.NotMatch, strings.Clone)
}

// writeList writes a list that is not empty.
func writeList[T any](b *strings.Builder, key string, list []T, text func(T) string) {
	if len(list) > 0 {
		fmt.Fprintf(b, "%s = [%s]\n", key, quoteList(list, text))
	}
}

func quoteList[T any](list []T, text func(T) string) string {
	var out []string
	for _, v := range list {
		out = append(out, quote(text(v)))
	}
	return strings.Join(out, ", ")
}

// quote writes a basic string of TOML 1.0.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case hidden(c):
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String() + `"`
}

// hidden reports whether a terminal or an editor obeys a character.
func hidden(c rune) bool {
	return c < ' ' || c >= 0x7f && c < 0xa0 || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069
}
