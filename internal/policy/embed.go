package policy

import _ "embed"

// Each data file is a string of its own: reading one from an embed.FS copies
// it, which takes much of the time of a process with one decision.
var (
	//go:embed data/rules.txt
	rulesText string
	//go:embed data/protected.txt
	protectedText string
	//go:embed data/families.txt
	familiesText string
	//go:embed data/readers.txt
	readersText string
	//go:embed data/values.txt
	valuesText string
	//go:embed data/secretvars.txt
	secretText string

	//go:embed data/danger/crossing.txt
	crossingText string
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
var dangerFiles = []dangerFile{
	{"crossing.txt", &crossingText},
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
