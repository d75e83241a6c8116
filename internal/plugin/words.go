package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/redact"
)

// Words say what the plugin is and may do, one line each, for the human who is
// asked about it. Nothing in them acts on a terminal.
func (m *Manifest) Words() []string {
	w := []string{m.starts()}
	if m.About != "" {
		w = append(w, fmt.Sprintf("says of itself: %s", redact.Visible(m.About)))
	}
	w = append(w, m.filesWords()...)
	w = append(w, m.hostsWords())
	if len(m.Secrets) > 0 {
		w = append(w, "may have these secrets put into requests to the hosts they are bound to: "+list(m.Secrets))
	}
	if len(m.Env) > 0 {
		w = append(w, "gets the variables "+list(slices.Sorted(maps.Keys(m.Env))))
	}
	if m.Kind == Hook {
		return append(w, m.hookWords(), m.limitWords())
	}
	return append(w, m.toolWords(), m.limitWords())
}

func (m *Manifest) starts() string {
	var words []string
	for _, a := range m.Argv() {
		words = append(words, quoteWord(a))
	}
	what := "runs " + strings.Join(words, " ")
	if m.Run.Image != "" {
		what += " in the image " + redact.Visible(m.Run.Image)
	}
	return what
}

// quoteWord shows a word of a command line so that its borders are seen.
func quoteWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_~-") == "" {
		return s
	}
	return fmt.Sprintf("%+q", s)
}

func (m *Manifest) filesWords() []string {
	var w []string
	if len(m.Files.Write) > 0 {
		w = append(w, "may read and CHANGE "+named(m.Files.Write))
	}
	if len(m.Files.Read) > 0 {
		w = append(w, "may read "+named(m.Files.Read))
	}
	if w == nil {
		w = []string{"sees no file of yours, neither the project nor your home directory"}
	}
	return w
}

// named names paths as people do.
func named(paths []string) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		switch p {
		case ".":
			names[i] = "the whole project"
		case "~":
			names[i] = "your whole home directory"
		default:
			names[i] = redact.Visible(p)
		}
	}
	return strings.Join(names, ", ")
}

func (m *Manifest) hostsWords() string {
	hosts := m.hosts(true)
	if len(hosts) == 0 {
		return "has no network"
	}
	return "may connect to " + list(hosts) + ", and to nothing else"
}

func (m *Manifest) toolWords() string {
	t := m.Tools
	w := "every call of a tool asks you"
	if len(t.Allow) > 0 {
		w = "calls of these tools run WITHOUT asking you: " + list(t.Allow)
		if len(t.Ask) > 0 {
			w += "; of these ask: " + list(t.Ask)
		}
		w += "; all others ask"
	}
	if len(t.Deny) > 0 {
		w += "; never called: " + list(t.Deny)
	}
	return w
}

func (m *Manifest) limitWords() string {
	l := m.Limits.Filled()
	cores := ""
	if l.CPUs != 0 {
		cores = fmt.Sprintf(" %g cores,", l.CPUs)
	}
	w := fmt.Sprintf("limits: %s of memory, %d processes,%s %s at a time", amount(l.MemoryMB<<20), l.PIDs, cores, l.Time)
	if m.Kind == Hook {
		return w
	}
	return w + fmt.Sprintf(", results up to %s, %d calls at once", amount(l.ResultBytes), l.CallsAtOnce)
}

// amount writes bytes with the largest unit that leaves no rest.
func amount(bytes int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for i+1 < len(units) && bytes != 0 && bytes%1024 == 0 {
		bytes, i = bytes/1024, i+1
	}
	return fmt.Sprintf("%d %s", bytes, units[i])
}

func list(names []string) string {
	shown := make([]string, len(names))
	for i, n := range names {
		shown[i] = redact.Visible(n)
	}
	return strings.Join(shown, ", ")
}
