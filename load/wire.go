package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hayward-dev/hayward/client"
)

// Serve is a client process: it reads its [Share] and then orders from in, one
// JSON value on each line, and writes entries to out.
func Serve(ctx context.Context, c *client.Client, in io.Reader, out io.Writer) error {
	lines := json.NewDecoder(in)
	var share Share
	if err := lines.Decode(&share); err != nil {
		return fmt.Errorf("load: read the share: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	orders := make(chan Order)
	// It ends with the process at the latest: a read of stdin has no other end.
	go func() {
		for {
			var o Order
			if err := lines.Decode(&o); err != nil {
				cancel(errors.New("load: the process that drives the load is gone"))
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	w := &writer{encoder: json.NewEncoder(out)}
	return errors.Join(Client(ctx, c, share, orders, w.tell), w.err)
}

// writer writes entries from any goroutine.
type writer struct {
	mu      sync.Mutex
	encoder *json.Encoder
	err     error // the first; guarded by mu
}

func (w *writer) tell(e Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.encoder.Encode(e); err != nil && w.err == nil {
		w.err = fmt.Errorf("load: tell: %w", err)
	}
}

// readEntries reads what a client process writes until its end.
func readEntries(r io.Reader, each func(Entry)) error {
	d := json.NewDecoder(bufio.NewReaderSize(r, 64<<10))
	for {
		var e Entry
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("load: read what a client tells: %w", err)
		}
		each(e)
	}
}
