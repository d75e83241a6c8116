package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fixtures fill a workspace, whose user is the one that calls.
var fixtures = map[string]func() error{"repository": repository, "module": module, "files": workshop}

// repository makes a git repository of 20,000 files in 200 directories, all
// committed.
func repository() error {
	for i := range 20_000 {
		name := fmt.Sprintf("src/pkg%03d/file%05d.c", i/100, i)
		if err := write(name, fmt.Sprintf("/* file %d */\nint f%d(void) { return %d; }\n", i, i, i)); err != nil {
			return err
		}
	}
	return git([]string{"init", "-q"}, []string{"add", "-A"},
		[]string{"-c", "user.name=Bench", "-c", "user.email=bench@example.com", "commit", "-q", "-m", "files"}, []string{"status"})
}

func git(commands ...[]string) error {
	for _, args := range commands {
		if out, err := exec.Command("git", append([]string{"-c", "gc.auto=0"}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %q: %w: %s", args, err, out)
		}
	}
	return nil
}

// packages is how many the generated module has besides main.
const packages = 200

// module makes a Go module. Each package imports up to three that were made
// before it, so that a build has some depth and can also do two things at once.
func module() error {
	if err := write("go.mod", "module example.com/generated\n\ngo 1.26\n"); err != nil {
		return err
	}
	if err := os.Mkdir(".gotmp", 0o755); err != nil {
		return err
	}
	var main strings.Builder
	main.WriteString("package main\n\nimport (\n\t\"fmt\"\n\n")
	for i := range packages {
		if err := write(fmt.Sprintf("p%03d/p.go", i), packageText(i)); err != nil {
			return err
		}
		fmt.Fprintf(&main, "\t\"example.com/generated/p%03d\"\n", i)
	}
	main.WriteString(")\n\nfunc main() {\n\tn := 0\n")
	for i := range packages {
		fmt.Fprintf(&main, "\tn += p%03d.Sum(%d)\n", i, i)
	}
	main.WriteString("\tfmt.Println(n)\n}\n")
	return write("main.go", main.String())
}

// packageText is the source of package i.
func packageText(i int) string {
	var b, calls strings.Builder
	fmt.Fprintf(&b, "package p%03d\n\nimport (\n\t\"fmt\"\n\t\"sort\"\n\t\"strings\"\n", i)
	for _, back := range []int{10, 17, 31} {
		if j := i - back; j >= 0 {
			fmt.Fprintf(&b, "\t\"example.com/generated/p%03d\"\n", j)
			fmt.Fprintf(&calls, "\tn += p%03d.Sum(k - 1)\n", j)
		}
	}
	b.WriteString(")\n\n")
	for k := range 20 {
		fmt.Fprintf(&b, `// F%d sorts the words of s and joins them.
func F%d(s string) string {
	words := strings.Fields(s)
	sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
	return fmt.Sprintf("%%d %%s %%d", len(words), strings.Join(words, ","), %d)
}

`, k, k, k)
	}
	fmt.Fprintf(&b, "// Sum adds things up.\nfunc Sum(k int) int {\n\tif k <= 0 {\n\t\treturn 0\n\t}\n\tn := len(F0(\"b a\"))\n%s\treturn n\n}\n", calls.String())
	return b.String()
}

// workshop makes what make needs, and the files of the tasks about files.
func workshop() error {
	return errors.Join(write("Makefile", "all:\n\t@:\n"), os.Mkdir("old", 0o755), writeFiles("kept"))
}

func write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
