package policy

import _ "embed"

// Each data file is a string of its own: reading one from an embed.FS copies
// it, which is much of what a process costs that decides once.
var (
	//go:embed data/rules.txt
	rulesText string
	//go:embed data/protected.txt
	protectedText string
	//go:embed data/env.txt
	environText string
	//go:embed data/secretvars.txt
	secretText string

	// dangerIndex says which of the files of dangers speak of which program. It is
	// made of them by "go test ./internal/policy -run TestDangerIndex -update".
	//
	//go:embed data/danger.index
	dangerIndex string

	//go:embed data/danger/destroy.txt
	destroyText string
	//go:embed data/danger/download.txt
	downloadText string
	//go:embed data/danger/escalate.txt
	escalateText string
	//go:embed data/danger/exfiltrate.txt
	exfiltrateText string
	//go:embed data/danger/interpreters.txt
	interpretersText string
	//go:embed data/danger/persist.txt
	persistText string
	//go:embed data/danger/review.txt
	reviewText string
	//go:embed data/danger/saas.txt
	saasText string
	//go:embed data/danger/sandbox.txt
	sandboxText string
	//go:embed data/danger/secrets.txt
	secretsText string
)

// dangerFiles are the files of dangers, in order.
var dangerFiles = []struct {
	name string
	text *string
}{
	{"destroy.txt", &destroyText},
	{"download.txt", &downloadText},
	{"escalate.txt", &escalateText},
	{"exfiltrate.txt", &exfiltrateText},
	{"interpreters.txt", &interpretersText},
	{"persist.txt", &persistText},
	{"review.txt", &reviewText},
	{"saas.txt", &saasText},
	{"sandbox.txt", &sandboxText},
	{"secrets.txt", &secretsText},
}

// dangerText returns a file of dangers.
func dangerText(name string) string {
	for _, f := range dangerFiles {
		if f.name == name {
			return *f.text
		}
	}
	panic("there is no " + name) // the index, which a test makes, names what is there
}
