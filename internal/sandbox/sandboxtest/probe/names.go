package probe

import "strings"

// What is narrower than the writable directory it lies in. The last of each
// are two directories down, so that a parent can be moved away.
var (
	WritableKept   = []string{"settings.json", "hooks", "sub/deep/settings.json"}
	WritableClosed = []string{"token", "closed", "sub/deep/token"}
)

// CredentialDirs are the directories of Koda's table, below HOME.
var CredentialDirs = []string{
	".ssh", ".aws", ".gnupg", ".kube", ".azure", ".password-store", ".terraform.d", ".claude", ".android",
	".config/gcloud", ".config/gh", ".config/op", ".config/helm", ".config/netlify", ".config/vercel",
	".config/fly", ".config/doppler", ".config/stripe", ".config/heroku", ".config/koda/db",
}

// CredentialFile is the name of the file in each of CredentialDirs.
const CredentialFile = "credential"

// CredentialFiles are the files of Koda's table, below HOME.
var CredentialFiles = []string{
	".netrc", ".git-credentials", ".npmrc", ".pypirc", ".docker/config.json", ".vault-token", ".env",
}

// Protected are files that programs of the host execute or obey later, below a directory
// somebody works in.
var Protected = []string{
	".git/hooks/pre-commit", ".git/config", ".git/config.worktree", ".git/info/attributes", ".git/commondir",
	".git/modules/x/hooks/post-checkout", ".git/modules/x/config", ".git/worktrees/w/config.worktree",
	".vscode/tasks.json", ".idea/workspace.xml", ".claude/settings.local.json", ".codex/config.toml", ".gemini/settings.json",
	".cursor/mcp.json", ".mcp.json", ".envrc", ".husky/pre-commit", ".bawn/config.toml", ".koda/agents/x.json", ".koda/skills/x.md",
	".bashrc", ".profile", ".zshrc", ".gitconfig", ".npmrc", ".yarn/plugins/x.cjs", "lefthook.yml",
}

// Logins are those of them that only the programs of a home directory execute: they
// count at the top of a workspace alone (package protect).
var Logins = []string{".bashrc", ".profile", ".zshrc"}

// GitFile is ".git" where it is a file: it tells git where its directory is.
const GitFile = ".git"

// Directories of the workspaces, below them.
const (
	Nested = "sub/nested" // Present: a repository with every protected name
	Spare  = "sub/spare"  // Present: a repository whose configuration a guest may remove, as it may any file, but not replace
	Deep   = "sub/deep"   // Absent: an empty directory
	Repo   = "sub/repo"   // Absent: a repository with nothing but what git needs
)

// ProbeName is the name of a file made in a shared directory such as /tmp.
func (w *World) ProbeName() string { return "bawn-probe-" + w.Token }

// InGit reports whether a protected name lies in a git directory.
func InGit(name string) bool { return strings.HasPrefix(name, GitFile+"/") }
