package plan

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// signals turns the process's signals into what a run does about them. Nothing
// is ignored in the sense of the system, which a daemon started meanwhile would
// inherit.
type signals struct {
	// interrupts has one value for each SIGINT or SIGTERM.
	interrupts chan struct{}
	hangup     atomic.Bool
	caught     chan os.Signal
	quit, done chan struct{}
}

// catchSignals catches until stop. SIGPIPE is caught so that a write to a pipe
// whose reader is gone is an error and not the end of this process.
func catchSignals() *signals {
	s := newSignals()
	signal.Notify(s.caught, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	return s
}

// newSignals handles what is sent on caught, until stop.
func newSignals() *signals {
	s := &signals{
		// Two are all that a run tells apart.
		interrupts: make(chan struct{}, 2),
		caught:     make(chan os.Signal, 8),
		quit:       make(chan struct{}),
		done:       make(chan struct{}),
	}
	go s.loop()
	return s
}

func (s *signals) loop() {
	defer close(s.done)
	for {
		select {
		case sig := <-s.caught:
			switch sig {
			case syscall.SIGHUP:
				s.hangup.Store(true)
			case syscall.SIGPIPE:
			default:
				s.interrupt()
			}
		case <-s.quit:
			return
		}
	}
}

func (s *signals) interrupt() {
	select {
	case s.interrupts <- struct{}{}:
	default: // as many as a run tells apart are under way
	}
}

// hungUp reports whether the terminal was closed.
func (s *signals) hungUp() bool { return s.hangup.Load() }

// errInterrupted is the cause of a context that an interrupt ended.
var errInterrupted = errors.New("interrupted")

// during calls f with a context that the next interrupt ends, and reports whether
// one did. An interrupt that f took no notice of is not lost on its caller.
func (s *signals) during(parent context.Context, f func(context.Context)) (interrupted bool) {
	ctx, cancel := context.WithCancelCause(parent)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.interrupts:
			if ctx.Err() != nil { // f is over: it is for what comes next
				s.interrupt()
				return
			}
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	f(ctx)
	cancel(nil)
	<-ended
	return errors.Is(context.Cause(ctx), errInterrupted)
}

func (s *signals) stop() {
	signal.Stop(s.caught)
	close(s.quit)
	<-s.done
}
