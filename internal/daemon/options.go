package daemon

import (
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/gateway"
	"github.com/hayward-dev/hayward/internal/deadlines"
	"github.com/hayward-dev/hayward/internal/paths"
	"github.com/hayward-dev/hayward/internal/pricing"
	"github.com/hayward-dev/hayward/internal/tracing"
	"github.com/hayward-dev/hayward/resume"
)

// Options configure one daemon. Zero values mean the documented defaults.
type Options struct {
	Paths paths.Paths
	// Version is shown by status.
	Version string
	// Idle ends the daemon after that long without a client's request and without
	// a live subagent. 0: never.
	Idle time.Duration
	// TCP is host:port of an additional listener. Empty: none.
	TCP string
	// Metrics is where metrics are to be read: see [metrics.Listen]. Empty: nowhere.
	Metrics string
	// Tracing is where spans go, if it is enabled.
	Tracing tracing.Config
	// Limits bound what runs and what waits.
	Limits coordinator.Limits
	// Retention bounds what is kept of finished subagents.
	Retention coordinator.Retention
	// MaxMemory bounds the memory, in bytes, of a subagent whose spawn names no
	// bound. 0: no bound.
	MaxMemory int64
	// Worktrees is how isolation worktree is done.
	Worktrees Worktrees
	// Deadlines bound the steps of a subagent's life.
	Deadlines deadlines.Set
	// Origins tell where Limits and Deadlines come from, by the names that status
	// has for them. One that is not there and not zero is "set".
	Origins map[string]string
	// Settle gives each spawn what the configuration pins and refuses one that asks
	// for something else. Nil: nothing is pinned.
	Settle func(*events.Spawn) *events.Error
	// AgentRunner runs agent types that name no runner.
	AgentRunner string
	// Resume bounds what may be gone on from.
	Resume resume.Policy
	// Upstreams are the model APIs that agents reach through the gateway.
	// MaxTokens bounds what one of them may use there, MaxTreeTokens what those of one
	// tree may together, MaxPromptTokens those of one prompt; 0: no bound.
	Upstreams                                 []gateway.Upstream
	MaxTokens, MaxTreeTokens, MaxPromptTokens int64
	// Getenv reads the environment that keys of the Upstreams may be in.
	Getenv func(string) string
	// MaxCostUSD bounds what the model calls of one agent may cost; 0: no bound.
	// Prices are over those that are built in.
	MaxCostUSD float64
	Prices     pricing.Table
	// SyncAlways makes each record survive a power cut.
	SyncAlways bool
	// Handover leaves children running when Run's context ends.
	Handover bool
	Log      *zap.Logger
	// Ready is called once clients can connect, Stopping when the daemon begins to
	// leave. Either may be nil.
	Ready, Stopping func()
	// Watchdog is how long a service manager waits for a sign of life, 0 for ever.
	// Alive gives the sign, with a line for people; it is called well within that
	// time, and only when the drain loop has turned.
	Watchdog time.Duration
	Alive    func(status string)
}
