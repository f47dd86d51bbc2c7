package main

import (
	"github.com/hayward-dev/hayward/config"
	"github.com/hayward-dev/hayward/internal/daemon"
	"github.com/hayward-dev/hayward/internal/tracing"
)

// observability sets where metrics are read and where spans go. The environment
// of a daemon that a verb started is that of whoever happened to need it first,
// so for such a one only the configuration counts.
func (a *app) observability(o *daemon.Options, onDemand bool) error {
	o.Metrics = a.settings.String(config.MetricsListen)
	getenv := a.getenv
	if onDemand {
		getenv = func(string) string { return "" }
	}
	var err error
	if o.Tracing, err = tracing.Configure(a.settings.String(config.TracingEndpoint), getenv); err != nil {
		return usage("%w", err)
	}
	return nil
}
