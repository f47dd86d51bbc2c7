package spawner

import (
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/kernelaudit"
	"github.com/hayward-dev/hayward/sandbox"
)

// hint says what of a failed command looks like the sandbox: drawn from what the
// command printed, and from what the kernel recorded where its log is read.
func (c *child) hint(stderr string) *events.SandboxHint {
	report := c.sandboxReport()
	return observed(report, sandbox.Hint(report, stderr), c.s.cfg.Audit.Take(c.proc.identity.PID))
}

// observed marks a hint that the kernel confirms. Without one it takes the latest
// refusal that the sandbox explains.
func observed(report *events.SandboxReport, printed *events.SandboxHint, denials []kernelaudit.Denial) *events.SandboxHint {
	var last *events.SandboxHint
	for _, d := range denials {
		h := sandbox.HintPath(report, d.Path)
		if h == nil {
			continue
		}
		h.Observed = true
		if printed != nil && printed.Path == h.Path {
			return h
		}
		last = h
	}
	if printed != nil {
		return printed
	}
	return last
}
