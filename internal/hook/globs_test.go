package hook

import (
	"fmt"
	"strings"
	"testing"
)

// TestPatterns hands tools patterns that lead where their other members don't.
// Each has to be judged by where that is, or refused.
func TestPatterns(t *testing.T) {
	const refused = "refused"
	for _, test := range []struct{ agent, tool, input, want string }{
		{"claude", "Glob", `{"pattern":"/h/.ssh/*"}`, "/p /h/.ssh"},
		{"claude", "Glob", `{"pattern":"/h/.ssh/id_rsa"}`, "/p /h/.ssh/id_rsa"},
		{"claude", "Glob", `{"pattern":"../h/.ssh/id*"}`, "/p /h/.ssh"},
		{"claude", "Glob", `{"pattern":"../x","path":"/p/a/b"}`, "/p/a/b /p/a/x"},
		{"claude", "Glob", `{"pattern":"*/../../h/.ssh/id*"}`, refused},
		{"claude", "Glob", `{"pattern":"{/h/.ssh/*,*.go}"}`, "/p /h/.ssh"},
		{"claude", "Glob", `{"pattern":"{a,{/h/.ssh,b}}/*"}`, "/p /h/.ssh"},
		{"claude", "Glob", `{"pattern":".{.,x}/h/*"}`, "/p /h"},
		{"claude", "Glob", `{"pattern":"\\/h/.ssh/*"}`, "/p /h/.ssh"},
		{"claude", "Glob", `{"pattern":"~/.ssh/*"}`, refused},
		{"claude", "Glob", `{"pattern":"` + strings.Repeat("{a,b}", 9) + `"}`, refused},
		{"claude", "Grep", `{"pattern":"/h/.ssh/","glob":"/h/.ssh/*"}`, "/p /h/.ssh"},
		{"gemini", "glob", `{"pattern":"/*"}`, "/p /"},
		{"gemini", "read_many_files", `{"paths":["README.md"],"include":["/h/.ssh/id_rsa"]}`, "README.md /h/.ssh/id_rsa"},
		{"gemini", "read_many_files", `{"include":[".env"]}`, "/p/.env"},
		{"gemini", "read_many_files", `{"include":["(a)/.env"]}`, "/p /p/(a)/.env"},
		{"gemini", "read_many_files", `{"paths":["/h/.s*/id_rsa"]}`, refused},
		{"qwen", "read_many_files", `{"paths":["x"],"include":["../h/.s*/id_rsa"]}`, refused},
		// Controls: what stays where it is looked for.
		{"claude", "Glob", `{"pattern":"{src,test}/**/*.{ts,tsx}"}`, "/p"},
		{"claude", "Grep", `{"pattern":"/etc/../{a","path":"/q"}`, "/q"},
		{"claude", "Read", `{"file_path":"/p/a{b,c}*"}`, "/p/a{b,c}*"},
	} {
		event := map[string]string{"gemini": "BeforeTool"}[test.agent]
		if event == "" {
			event = "PreToolUse"
		}
		c, err := Read(test.agent, fmt.Appendf(nil, `{"hook_event_name":%q,"cwd":"/p","tool_name":%q,"tool_input":%s}`, event, test.tool, test.input))
		got := refused
		if err == nil {
			var list []string
			for _, a := range c.Actions {
				if list = append(list, a.Resource); a.Operation.String() != "read" {
					t.Errorf("%s: it is to %s", test.input, a.Operation)
				}
			}
			got = strings.Join(list, " ")
		}
		if got != test.want {
			t.Errorf("%s %s: got %s (%v), want %s", test.tool, test.input, got, err, test.want)
		}
	}
}

// TestMembersOfAnyCase: an agent that reads members as Go does takes "Command"
// for "command"; it runs what comes last.
func TestMembersOfAnyCase(t *testing.T) {
	for input, denied := range map[string]bool{
		`{"command":"ls","Command":"rm -rf x"}`:  true,
		`{"Command":"rm -rf x","command":"ls"}`:  true,
		`{"command":"ls","wor\u212adir":"/etc"}`: true, // a Kelvin sign
		`{"command":"ls","WorkDir":"sub"}`:       true,
		`{"command":"ls","x":1,"X":2}`:           true,
		`{"command":"ls","workdir":"sub","x":1}`: false, // the control
	} {
		if _, err := Read("opencode", []byte(`{"v":"1","event":"tool.execute.before","cwd":"/p","tool":"bash","input":`+input+`}`)); (err != nil) != denied {
			t.Errorf("%s: got %v", input, err)
		}
	}
	for tool, denied := range map[string]bool{"grep": true, "mcp__a__b": false} {
		if _, err := Read("claude", []byte(`{"hook_event_name":"PreToolUse","cwd":"/p","tool_name":"`+tool+`","tool_input":{"Path":"/h/.ssh"}}`)); (err != nil) != denied {
			t.Errorf("%s: got %v", tool, err)
		}
	}
}

// TestServersNamesakes: what one agent's own tools are called, a server of
// another's can be made to be called.
func TestServersNamesakes(t *testing.T) {
	for tool, judged := range map[string]bool{"plan_exit": true, "ask_user": true, "report_intent": true, "web_search": true, "todowrite": false} {
		c, err := Read("opencode", []byte(`{"v":"1","event":"tool.execute.before","cwd":"/p","tool":"`+tool+`","input":{}}`))
		if err != nil || (len(c.Actions) == 1) != judged {
			t.Errorf("%s: got %+v, %v", tool, c.Actions, err)
		}
	}
	if c, err := Read("gemini", []byte(`{"hook_event_name":"BeforeTool","cwd":"/p","tool_name":"ask_user"}`)); err != nil || len(c.Actions) != 0 {
		t.Errorf("control: got %+v, %v", c.Actions, err)
	}
}

// FuzzAlternatives takes patterns apart: nothing of braces that close is left,
// and where each base lies is said.
func FuzzAlternatives(f *testing.F) {
	for _, p := range []string{"{a,b}", "{a,{b,c}}/../*", "a{b", "}{", "{}", "/*/..", "{{{a}}},"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		all, err := alternatives(p)
		if err != nil {
			return
		}
		for _, a := range all {
			if _, _, _, ok := braces(a); ok {
				t.Fatalf("%q: %q is left", p, a)
			}
			base, away, err := baseOf(a)
			if err == nil && !away && (base[0] == '/' || base == ".." || strings.HasPrefix(base, "../")) {
				t.Fatalf("%q: %q is taken for one that stays", p, a)
			}
		}
	})
}
