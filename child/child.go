package child

// Config ties the supervisor to the constructor that ran before it.
type Config struct {
	// Confined reports whether the constructor carried out its plan to the end.
	Confined func() bool
	// PlanEnforced reports whether that plan confines, which must be what the
	// spec says.
	PlanEnforced func() bool
	// TimerSlack is the timer slack in nanoseconds that a command gets, see
	// prctl(2); nil or 0: that of the supervisor.
	TimerSlack func() uint64
}

func (c Config) slack() uint64 {
	if c.TimerSlack == nil {
		return 0
	}
	return c.TimerSlack()
}

// The exit statuses of hayward-child.
const (
	// ExitReported: report.json says everything, also that the command could not
	// be started.
	ExitReported = 0
	// ExitRefused: the supervisor did not go on; nothing was started.
	ExitRefused = 125
)
