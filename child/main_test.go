package child_test

import (
	"testing"

	"github.com/hayward-dev/hayward/internal/testkit"
)

func TestMain(m *testing.M) { testkit.LeakCheck(m) }
