package grammar

import _ "embed"

// Each data file is a string of its own: reading one from an embed.FS copies
// it, which is much of what a process costs that asks about one command.
var (
	//go:embed data/archive.txt
	archiveText string
	//go:embed data/build.txt
	buildText string
	//go:embed data/c.txt
	cText string
	//go:embed data/cloud.txt
	cloudText string
	//go:embed data/containers.txt
	containersText string
	//go:embed data/databases.txt
	databasesText string
	//go:embed data/dotnet.txt
	dotnetText string
	//go:embed data/files.txt
	filesText string
	//go:embed data/forges.txt
	forgesText string
	//go:embed data/git.txt
	gitText string
	//go:embed data/go.txt
	goText string
	//go:embed data/help.txt
	helpText string
	//go:embed data/jvm.txt
	jvmText string
	//go:embed data/lint.txt
	lintText string
	//go:embed data/misc-langs.txt
	miscLangsText string
	//go:embed data/node.txt
	nodeText string
	//go:embed data/python.txt
	pythonText string
	//go:embed data/ruby.txt
	rubyText string
	//go:embed data/rust.txt
	rustText string
	//go:embed data/search.txt
	searchText string
	//go:embed data/system.txt
	systemText string
	//go:embed data/test.txt
	testText string
	//go:embed data/text.txt
	textText string
	//go:embed data/version.txt
	versionText string
	//go:embed data/wrappers.txt
	wrappersText string

	// index says which of the files speak of which program. It is made of them by
	// "go test ./internal/shell/grammar -run TestIndex -update".
	//
	//go:embed data/index
	index string
)

// files are the data files, in order.
var files = []struct {
	name string
	text *string
}{
	{"archive.txt", &archiveText},
	{"build.txt", &buildText},
	{"c.txt", &cText},
	{"cloud.txt", &cloudText},
	{"containers.txt", &containersText},
	{"databases.txt", &databasesText},
	{"dotnet.txt", &dotnetText},
	{"files.txt", &filesText},
	{"forges.txt", &forgesText},
	{"git.txt", &gitText},
	{"go.txt", &goText},
	{"help.txt", &helpText},
	{"jvm.txt", &jvmText},
	{"lint.txt", &lintText},
	{"misc-langs.txt", &miscLangsText},
	{"node.txt", &nodeText},
	{"python.txt", &pythonText},
	{"ruby.txt", &rubyText},
	{"rust.txt", &rustText},
	{"search.txt", &searchText},
	{"system.txt", &systemText},
	{"test.txt", &testText},
	{"text.txt", &textText},
	{"version.txt", &versionText},
	{"wrappers.txt", &wrappersText},
}

// embedded returns a data file.
func embedded(name string) string {
	for _, f := range files {
		if f.name == name {
			return *f.text
		}
	}
	panic("there is no " + name) // the index, which a test makes, names what is there
}
