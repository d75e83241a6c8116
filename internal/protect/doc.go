// Package protect is the one table of the names that a session must not write, and
// of the credentials that it must not see. The policy, every sandbox and the data
// about agents use it; docs/protected-names.md is made from it.
//
// # Which names are in it
//
// A name is in the table if all of this is true:
//
//   - A program of the host reads it by itself when somebody does one of four
//     things: opens or enters the directory (an editor, a coding agent, a shell
//     with direnv or mise), asks a version control for the status or commits,
//     starts an interpreter or a debugger there, or runs a package manager.
//   - It says which program, code, server, registry or right counts.
//   - It is not the project's own code or build. An editor that builds what it
//     opens runs that as well, and so does a person who builds it (risk R2).
//   - No everyday command writes it as its output, as "python -m venv" does.
//
// A program that has asked once for the directory (VS Code, direnv, mise) counts as
// one that reads by itself. Texts that only a coding agent reads, such as
// .cursorrules, are in the table. Those that humans read too, such as AGENTS.md, are
// not: the policy asks before a tool writes one. Dotfiles of a shell or a login are
// in it, because people keep them in a project and link them into their home
// directory.
//
// # At which depth
//
// A name counts at any depth: somebody may open, enter or start something in any
// directory of a project. A name of class login is executed from a home directory
// alone. It counts at the top of each writable place, where dotfiles are kept. It
// counts at any depth of a place that is or holds a home directory, or to which a
// link of the home directory leads (launch finds out).
//
// Only creating and changing is refused. Existing ones of the repository can be
// read. isolation.unprotect or --unprotect opens one for a project.
//
// # The data
//
// Each file of data has an entry a line, with fields between " | ". Each is read
// when it is first asked for: a start of bawn that asks for nothing pays nothing.
package protect

// ClosedHome is why a place of the home is hidden that nobody named: only what programs
// need of it is shown.
const ClosedHome = "the home is closed"
