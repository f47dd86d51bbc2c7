package daemon

import (
	"context"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/internal/metrics"
	"github.com/hayward-dev/hayward/internal/tracing"
)

// observed is what tells others how the daemon is: metrics and traces. None of
// it is on the way of a request or of a child.
type observed struct {
	instruments *instruments
	traces      *traces
	stages      *stages
}

// flushTimeout bounds the sending of the last spans when the daemon leaves.
const flushTimeout = 5 * time.Second

// prepareObserved makes what the other parts are given to tell.
func (d *daemon) prepareObserved() error {
	var tracer *tracing.Tracer
	if c := d.opts.Tracing; c.Enabled() {
		log := d.log.Named("tracing")
		var err error
		if tracer, err = tracing.New(c, d.opts.Version, log); err != nil {
			return fmt.Errorf("start tracing: %w", err)
		}
		d.onClose(func() {
			ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
			defer cancel()
			if err := tracer.Close(ctx); err != nil {
				log.Warn("the last spans were dropped", zap.Error(err))
			}
		})
	}
	o := &d.observed
	o.traces = newTraces(tracer)
	o.instruments = newInstruments(d.opts.Version, time.Now())
	o.stages = &stages{
		Journal: d.store, wrote: o.instruments.wrote,
		watchers: []func(step){o.instruments.durable, o.traces.durable, logSteps(d.log.Named("subagents"))}, live: make(map[string]progress),
	}
	return nil
}

// observe connects the instruments and opens the listener of the metrics.
func (d *daemon) observe(ctx context.Context, track *tracker) error {
	o := &d.observed
	o.instruments.readFrom(sources{stats: d.coord.Stats, health: d.coord.Health, dropped: d.bus.Dropped, late: track.late.Load})
	d.service.instruments, d.service.traces = o.instruments, o.traces
	if d.opts.Metrics == "" {
		return nil
	}
	l, err := metrics.Listen(ctx, d.opts.Metrics)
	if err != nil {
		return fmt.Errorf("listen for readers of metrics: %w", err)
	}
	log := d.log.Named("metrics")
	if a, is := l.Addr().(*net.TCPAddr); is && !a.IP.IsLoopback() {
		log.Warn("other machines can read the metrics", zap.Stringer("address", a))
	}
	s := metrics.Serve(l, &o.instruments.registry, log)
	d.onClose(func() {
		if err := s.Close(); err != nil {
			log.Warn("listener not closed", zap.Error(err))
		}
	})
	log.Info("metrics can be read", zap.String("address", s.Addr()))
	return nil
}
