package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// linkChecks leave links in the workspace that lead the human's programs, which
// follow them later, to files of the home directory.
func linkChecks() []Check {
	var list []Check
	for _, l := range []struct {
		name, why string
		do        func(fx Fixtures, link string) error
	}{
		{"absolute", "to a file by its absolute path", func(fx Fixtures, link string) error { return unix.Symlink(fx.Home+"/.bashrc", link) }},
		{"relative", "to a file by a relative path", func(_ Fixtures, link string) error { return unix.Symlink("../../.bashrc", link) }},
		{"later", "to a file that is not there", func(fx Fixtures, link string) error { return unix.Symlink(fx.Home+"/.config/new", link) }},
		{"home", "to the home directory", func(fx Fixtures, link string) error { return unix.Symlink(fx.Home, link) }},
		{"above", "to what holds the home directory", func(fx Fixtures, link string) error { return unix.Symlink(filepath.Dir(fx.Home), link) }},
		{"state", "to Bawn's own state", func(fx Fixtures, link string) error { return unix.Symlink(fx.Data, link) }},
		{"root", "through the root of the process that follows it", func(fx Fixtures, link string) error { return unix.Symlink("/proc/self/root"+fx.Home, link) }},
		{"cwd", "through the directory of the process that follows it", func(_ Fixtures, link string) error { return unix.Symlink("/proc/self/cwd/../../.bashrc", link) }},
		{"unsure", "out of a directory that is exchanged later", func(fx Fixtures, link string) error {
			return unix.Symlink(filepath.Base(scratch)+"/../../../.bashrc", link)
		}},
		{"protected", "to a protected name that is not there", func(_ Fixtures, link string) error { return unix.Symlink(".envrc", link) }},
		{"moved", "to the outside by a move", func(_ Fixtures, link string) error {
			deep, err := deepLink()
			if err != nil {
				return err
			}
			return unix.Rename(deep, link)
		}},
		{"aliased", "to the outside as a second name", func(_ Fixtures, link string) error {
			deep, err := deepLink()
			if err != nil {
				return err
			}
			return unix.Link(deep, link)
		}},
		{"tree", "to the outside by a move of its directory", func(_ Fixtures, link string) error {
			deep, err := deepLink()
			if err != nil {
				return err
			}
			return unix.Rename(filepath.Dir(deep), link)
		}},
	} {
		list = append(list, Check{
			Name: "A380:" + l.name, Family: "protected-link", State: probe.Absent, Why: "a link " + l.why, Want: linkRefused, Changes: true,
			Do: func(fx Fixtures) error {
				link := filepath.Join(fx.Workspace, "led-"+fx.Token)
				onUndo(func() { os.RemoveAll(link) })
				return l.do(fx, link)
			},
		})
	}
	return list
}

// deepLink makes a link in the scratch directory that leads up to the workspace.
func deepLink() (string, error) {
	p, err := scratchFile("deep/link")
	if err == nil {
		err = broken(os.MkdirAll(filepath.Dir(p), 0o755))
	}
	if err == nil {
		err = broken(os.Symlink("../../notes/new", p))
	}
	return p, err
}
