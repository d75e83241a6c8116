package main

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// credentialChecks read and write every place of Koda's table.
func credentialChecks() []Check {
	var list []Check
	for _, dir := range probe.CredentialDirs {
		at := func(fx Fixtures) string { return filepath.Join(fx.Home, dir) }
		file := func(fx Fixtures) string { return filepath.Join(at(fx), probe.CredentialFile) }
		list = append(list,
			reading("A250:"+dir, func(fx Fixtures) error { return readToken(file(fx), fx) }),
			reading("A251:"+dir, func(fx Fixtures) error { return listed(at(fx), probe.CredentialFile) }),
			writing("A252:"+dir, func(fx Fixtures) error { return openAndWrite(file(fx), unix.O_WRONLY|unix.O_APPEND) }),
			writing("A253:"+dir, func(fx Fixtures) error { return writeNew(filepath.Join(at(fx), "new")) }),
			writing("A254:"+dir, func(fx Fixtures) error { return unix.Rename(at(fx), at(fx)+".old") }),
		)
	}
	for _, name := range probe.CredentialFiles {
		file := func(fx Fixtures) string { return filepath.Join(fx.Home, name) }
		list = append(list,
			reading("A260:"+name, func(fx Fixtures) error { return readToken(file(fx), fx) }),
			writing("A261:"+name, func(fx Fixtures) error { return openAndWrite(file(fx), unix.O_WRONLY|unix.O_APPEND) }),
			writing("A262:"+name, func(fx Fixtures) error { return replace(file(fx)) }),
		)
	}
	return list
}

func reading(name string, do func(fx Fixtures) error) Check {
	return Check{Name: name, Family: "credentials", Why: "read a credential", Want: hiddenRefused, Do: do}
}

func writing(name string, do func(fx Fixtures) error) Check {
	want := append([]errno{unix.ENOENT}, linkRefused...)
	return Check{Name: name, Family: "credentials", Why: "change or plant a credential", Want: want, Changes: true, Do: do}
}

// replace renames a file of the workspace onto p.
func replace(p string) error {
	evil, err := evilFile()
	if err != nil {
		return err
	}
	return unix.Rename(evil, p)
}
