package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

// serve opens the sockets, waits for a reason to leave, and leaves in order.
func (d *daemon) serve(ctx context.Context) error {
	defer d.close()
	runCtx, stopLoop := context.WithCancel(context.Background())
	defer stopLoop()
	loop := &loop{done: make(chan struct{})}
	go func() {
		defer close(loop.done)
		loop.err = d.coord.Run(runCtx, d.left)
	}()

	err := d.openSockets()
	if err == nil {
		if d.opts.Ready != nil {
			d.opts.Ready()
		}
		fed := d.feedWatchdog()
		d.log.Info("serving", zap.String("state", d.opts.Paths.State), zap.String("socket", d.opts.Paths.ClientSocket()), zap.Int("pid", os.Getpid()))
		err = d.wait(ctx, loop)
		fed()
		d.stopping()
	}
	d.service.stop(context.Cause(d.ctx))
	stopLoop()
	<-loop.done
	err = errors.Join(loop.err, err)
	d.log.Info("left", zap.Error(err))
	if loop.err == nil && (errors.Is(err, ErrShutdown) || errors.Is(err, ErrIdle) || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// loop is the drain loop's goroutine; err may be read once done is closed.
type loop struct {
	done chan struct{}
	err  error
}

// openSockets lets the children in, then the clients.
func (d *daemon) openSockets() error {
	if err := d.bus.ServeChildren(d.opts.Paths.Bus()); err != nil {
		return fmt.Errorf("open the children's socket: %w", err)
	}
	if err := d.service.start(); err != nil {
		return err
	}
	token, err := writeToken(d.opts.Paths.ClientToken())
	if err != nil {
		return err
	}
	d.bus.SetClientToken(token)
	if err := d.bus.ServeClients(d.opts.Paths.ClientSocket()); err != nil {
		return fmt.Errorf("open the clients' socket: %w", err)
	}
	return nil
}

// writeToken replaces the clients' credential. Whoever may read the file may
// use the coordinator.
func writeToken(path string) (string, error) {
	var b [32]byte
	rand.Read(b[:]) // never fails
	token := hex.EncodeToString(b[:])
	tmp, err := os.CreateTemp(filepath.Dir(path), ".token-*") // mode 0600
	if err == nil {
		_, err = tmp.WriteString(token)
		err = errors.Join(err, tmp.Close())
		if err == nil {
			err = os.Rename(tmp.Name(), path)
		}
	}
	if err != nil {
		return "", events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "write the clients' token: %w", err)
	}
	return token, nil
}

// wait returns why to leave, after the children were seen to.
func (d *daemon) wait(ctx context.Context, loop *loop) error {
	look := time.NewTicker(lookInterval(d.opts.Idle))
	defer look.Stop()
	for {
		select {
		case <-loop.done: // after a shutdown, or for want of a store
			return ErrShutdown
		case <-d.ctx.Done(): // a client's shutdown: it has waited for the children
			return context.Cause(d.ctx)
		case <-ctx.Done():
			d.stopping()
			d.endChildren()
			return context.Cause(ctx)
		case <-look.C:
			d.watchLoop()
			if d.opts.Idle > 0 && d.idleFor() >= d.opts.Idle {
				return ErrIdle
			}
		}
	}
}

// lookInterval is how often the daemon looks after itself.
func lookInterval(idle time.Duration) time.Duration {
	if idle <= 0 {
		return loopPatience / 2
	}
	return min(max(idle/10, 50*time.Millisecond), loopPatience/2)
}

// loopPatience is how long the drain loop may have work and not turn.
const loopPatience = 10 * time.Second

// watchLoop says when the drain loop is wedged. It asks nothing of the loop.
func (d *daemon) watchLoop() {
	h := d.coord.Health()
	if still := stuckFor(h, time.Now()); still > 0 {
		d.log.Error("the drain loop does not turn", zap.Duration("for", still), zap.Int("backlog", h.Backlog), zap.Int("unanswered", h.Unanswered))
	}
}

// stuckFor is how long a loop that has work did not turn, 0 within its patience.
func stuckFor(h coordinator.Health, now time.Time) time.Duration {
	if still := now.Sub(h.LastTurn); h.Backlog > 0 && still > loopPatience {
		return still
	}
	return 0
}

// endChildren ends what runs before the daemon leaves on a signal.
func (d *daemon) endChildren() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	ended, left, err := d.coord.Shutdown(ctx, events.ShutdownRequest{Handover: d.opts.Handover})
	d.log.Info("children seen to", zap.Error(err), zap.Int("ended", ended), zap.Int("left", left), zap.Bool("handover", d.opts.Handover))
}

// idleFor is how long nobody needed the daemon; 0 while something lives.
func (d *daemon) idleFor() time.Duration {
	if d.spawner.Live() > 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	stats, err := d.coord.Stats(ctx)
	if err != nil || stats.Queued+stats.Pending+stats.Active > 0 {
		return 0
	}
	return time.Since(time.Unix(0, d.service.lastUse.Load()))
}
