package daemon

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// syncEvery calls write again and again. stop calls it once more and returns when
// it has.
func (d *daemon) syncEvery(interval time.Duration, write func() error) (stop func()) {
	try := func() {
		if err := write(); err != nil {
			d.log.Error("a power cut may take what was written", zap.Error(err))
		}
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				try()
			case <-done:
				try()
				return
			}
		}
	})
	return func() { close(done); running.Wait() }
}
