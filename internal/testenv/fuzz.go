package testenv

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// FuzzTime is how long a test looks for new cases by chance: short at home,
// longer where BAWN_FUZZ_TIME says so.
func FuzzTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("BAWN_FUZZ_TIME")
	if text == "" {
		return 2 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("BAWN_FUZZ_TIME: %v", err)
	}
	return d
}

// FuzzSeed is where chance begins: each time elsewhere, unless BAWN_FUZZ_SEED
// holds it.
func FuzzSeed(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("BAWN_FUZZ_SEED")
	if text == "" {
		return time.Now().UnixNano()
	}
	seed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("BAWN_FUZZ_SEED: %v", err)
	}
	return seed
}
