package child

// Config ties the supervisor to the constructor that ran before it.
type Config struct {
	// Confined reports whether the constructor carried out its plan to the end.
	Confined func() bool
	// PlanEnforced reports whether that plan confines, which must be what the
	// spec says.
	PlanEnforced func() bool
}

// The exit statuses of hayward-child.
const (
	// ExitReported: report.json says everything, also that the command could not
	// be started.
	ExitReported = 0
	// ExitRefused: the supervisor did not go on; nothing was started.
	ExitRefused = 125
)
