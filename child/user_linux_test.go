package child_test

import (
	"testing"

	"github.com/hayward-dev/hayward/internal/testkit"
)

func TestOrdinaryUser(t *testing.T) {
	testkit.AsOrdinaryUser(t, "^Test(Echo|EndBySignal|CommandSurroundings|Stop|Deadline|NothingIsLeft|Orphans|Supervisor|AllProcesses|Killed|ReportsOnTheBus|Stream$)")
}
