package dockerapi

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(around(m)) }
