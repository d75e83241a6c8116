package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tb notes how a test ended instead of ending.
type tb struct {
	testing.TB
	outcome, message string
}

func (*tb) Helper() {}
func (r *tb) Fatalf(format string, args ...any) {
	r.outcome, r.message = "failed", fmt.Sprintf(format, args...)
	panic(r)
}
func (r *tb) Skipf(format string, args ...any) {
	r.outcome, r.message = "skipped", fmt.Sprintf(format, args...)
	panic(r)
}

func outcome(probes map[string]probe, require string, features []string) *tb {
	return ended(func(t testing.TB) { check(t, probes, require, features) })
}

func TestNeed(t *testing.T) {
	probes := map[string]probe{
		"here":  func() error { return nil },
		"gone":  func() error { return errors.New("switched off") },
		"gone2": func() error { return errors.New("not built") },
	}
	tests := []struct {
		require  string
		features []string
		want     string
		message  string
	}{
		{"", nil, "ran", ""},
		{"", []string{"here"}, "ran", ""},
		{"", []string{"gone"}, "skipped", "needs gone, which is not here: switched off"},
		{"", []string{"here", "gone"}, "skipped", "switched off"},
		{"here", []string{"gone"}, "skipped", "switched off"},
		{"gone", []string{"gone"}, "failed", "switched off"},
		{"here,gone", []string{"gone"}, "failed", "switched off"},
		{"here, gone ,", []string{"gone"}, "failed", "switched off"},
		{"gone2", []string{"gone", "gone2"}, "skipped", "switched off"},
		{"all", []string{"gone"}, "failed", "switched off"},
		{"all", []string{"here"}, "ran", ""},
		{"", []string{"gonne"}, "failed", `unknown feature "gonne"`},
		{"here,gonne", []string{"here"}, "failed", `lists unknown feature "gonne"`},
		{"al", nil, "failed", `lists unknown feature "al"`},
	}
	for _, tt := range tests {
		t.Run(tt.require+"/"+strings.Join(tt.features, "+"), func(t *testing.T) {
			got := outcome(probes, tt.require, tt.features)
			if got.outcome != tt.want || !strings.Contains(got.message, tt.message) {
				t.Errorf("got %s: %q, want %s: %q", got.outcome, got.message, tt.want, tt.message)
			}
		})
	}
}

func TestProbesRunOnce(t *testing.T) {
	n := 0
	probes := once(map[string]probe{"x": func() error { n++; return nil }})
	for range 3 {
		outcome(probes, "", []string{"x"})
	}
	if n != 1 {
		t.Errorf("the probe ran %d times, want 1", n)
	}
}

// TestEveryFeatureAnswers tries the real probes: each must come to an end and
// say why where it refuses.
func TestEveryFeatureAnswers(t *testing.T) {
	for _, f := range Features() {
		t.Run(f, func(t *testing.T) {
			err := known[f]()
			if err != nil && strings.TrimSpace(err.Error()) == "" {
				t.Error("refuses without a reason")
			}
			t.Logf("%s: %v", f, err)
		})
	}
}

// TestNeedIsHonest compares what can be told in two ways.
func TestNeedIsHonest(t *testing.T) {
	if err := known["root"](); (err == nil) && os.Geteuid() != 0 {
		t.Error("root is said to be here for an ordinary user")
	}
	if err := runs("bawn-no-such-program")(); err == nil {
		t.Error("a program that does not exist is said to run")
	}
	if err := runs("false")(); err == nil {
		t.Error("a program that fails is said to run")
	}
}

// TestNothingIsLeft looks for what the probes may have made.
func TestNothingIsLeft(t *testing.T) {
	for _, f := range Features() {
		_ = known[f]()
	}
	own := fmt.Sprintf("bawn-testenv-%d*", os.Getpid())
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*", "/sys/fs/cgroup/*/*", os.TempDir()} {
		if left, err := filepath.Glob(filepath.Join(dir, own)); err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	}
}
