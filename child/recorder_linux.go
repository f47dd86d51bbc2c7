package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// recordPause is how long output gathers between two looks into the outbox. The
// first item after silence goes out at once. Two streams of maxPendingText each
// 20 ms stay below what the bridge lets one child send.
const recordPause = 20 * time.Millisecond

// recorder numbers what happened, writes it into the transcript and publishes
// it. Both lag behind the output files when they are slower.
type recorder struct {
	box        *outbox
	transcript io.Writer
	// publish sends items to the bus and returns when the bus has room for more
	// or ctx ended. Without a bus it returns at once.
	publish func(ctx context.Context, items []events.Item)

	finished chan events.Item // the last item
	done     chan struct{}

	// The following belong to run, and to everybody once done is closed.
	seq uint64
	err error // the first failure to write the transcript, which ends there
}

func newRecorder(box *outbox, transcript io.Writer, publish func(context.Context, []events.Item)) *recorder {
	return &recorder{
		box: box, transcript: transcript, publish: publish,
		finished: make(chan events.Item, 1), done: make(chan struct{}),
	}
}

// begin records what is there before run does, on the caller's goroutine. What is
// in the transcript then outlives the supervisor.
func (r *recorder) begin() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // there is no bus yet to wait for
	r.record(ctx, r.box.take(true))
	return r.err
}

// run records until finish.
func (r *recorder) run() {
	defer close(r.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	last := make(chan events.Item, 1)
	go func() {
		// A publish under way gives up when the end has come.
		last <- <-r.finished
		cancel()
	}()
	for {
		select {
		case <-r.box.wake:
			r.record(ctx, r.box.take(false))
		case item := <-last:
			r.record(ctx, append(r.box.take(true), item))
			return
		}
		select {
		case <-time.After(recordPause):
		case <-ctx.Done():
		}
	}
}

// finish records what is left and then last, and waits until that is done. It
// is called once; nothing is put into the outbox after it.
func (r *recorder) finish(last events.Item) error {
	last.At = time.Now().UTC()
	r.finished <- last
	<-r.done
	return r.err
}

func (r *recorder) record(ctx context.Context, items []events.Item) {
	if len(items) == 0 {
		return
	}
	var lines []byte
	for i := range items {
		r.seq++
		items[i].Seq = r.seq
		line, err := transcriptLine(items[i])
		if err != nil {
			r.fail(err)
			continue
		}
		lines = append(append(lines, line...), '\n')
	}
	if r.err == nil {
		if _, err := r.transcript.Write(lines); err != nil {
			r.fail(err)
		}
	}
	r.publish(ctx, items)
}

func (r *recorder) fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("transcript: %w", err)
	}
}

// transcriptLine encodes an item for the transcript: output is named by its
// place in the file of its stream, not repeated.
func transcriptLine(item events.Item) ([]byte, error) {
	if item.Kind == events.ItemOutput {
		item.Text, item.Encoding, item.TextOmitted = "", "", true
	}
	return encodeRecord(item)
}

// busItem returns the item as it goes over the bus, where text is bounded.
func busItem(item events.Item) events.Item {
	if len(item.Text) > events.MaxItemText && item.Encoding == "" {
		if item.Stream == "" { // else it is of a line, whose size Bytes is
			item.Bytes = int64(len(item.Text))
		}
		item.Text, item.TextOmitted = headUTF8(item.Text, events.MaxItemText), true
	}
	if len(item.Input) > events.MaxItemText {
		item.Input, item.TextOmitted = nil, true
	}
	return item
}

// errNoBus: there is no connection now, and nobody waits for one.
var errNoBus = errors.New("not connected to the bus")
