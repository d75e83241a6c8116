package shell

import (
	"strings"
	"testing"
)

var benchContext = Context{Dir: "/proj/p", Home: "/home/u", Env: map[string]string{"TMPDIR": "/tmp/s"}}

func BenchmarkReadSimple(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Read("git status --short src", benchContext)
	}
}

func BenchmarkReadPipeline(b *testing.B) {
	line := strings.Repeat("grep -v x file.txt | ", 19) + "sort"
	b.ReportAllocs()
	for b.Loop() {
		Read(line, benchContext)
	}
}
