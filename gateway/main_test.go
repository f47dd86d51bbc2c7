package gateway

import (
	"os"
	"testing"

	"github.com/hayward-dev/hayward/internal/testkit"
)

// agentVariable makes this program the agent that runs inside a child.
const agentVariable = "GATEWAY_TEST_AGENT"

func TestMain(m *testing.M) {
	if script := os.Getenv(agentVariable); script != "" {
		os.Exit(agent(script))
	}
	testkit.LeakCheck(m)
}
