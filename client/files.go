package client

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// Logs reads a part of a subagent's stdout or stderr.
func (c *Client) Logs(ctx context.Context, r events.FileRequest) (events.FileReply, error) {
	return c.readFile(ctx, events.FilesLogs, r)
}

// Transcript reads a part of a subagent's transcript.
func (c *Client) Transcript(ctx context.Context, r events.FileRequest) (events.FileReply, error) {
	return c.readFile(ctx, events.FilesTranscript, r)
}

func (c *Client) readFile(ctx context.Context, endpoint string, r events.FileRequest) (events.FileReply, error) {
	limit := callTimeout
	if r.Follow {
		limit = millis(r.TimeoutMS, events.DefaultFollowMS) + slack
	}
	subject := events.FilesSubject(endpoint)
	if c.opts.Inside != "" && endpoint == events.FilesLogs {
		subject = events.RPCLogsSubject(c.opts.Inside)
	} else if err := c.outside(endpoint); err != nil {
		return events.FileReply{}, err
	}
	reply, err := send[events.FileReply](ctx, c, subject, r, limit)
	return reply.Value, err
}

// Inspect reads everything about one subagent.
func (c *Client) Inspect(ctx context.Context, r events.InspectRequest) (events.InspectReply, error) {
	if err := c.outside("inspect"); err != nil {
		return events.InspectReply{}, err
	}
	reply, err := send[events.InspectReply](ctx, c, events.FilesSubject(events.FilesInspect), r, callTimeout)
	return reply.Value, err
}

// Stdin sends a part of a command's stdin, or with neither data nor EOF keeps
// it open. It returns once the command's pipe took the bytes.
func (c *Client) Stdin(ctx context.Context, r events.StdinRequest) (events.ControlReply, error) {
	if err := c.outside("stdin"); err != nil {
		return events.ControlReply{}, err
	}
	reply, err := send[events.ControlReply](ctx, c, events.FilesSubject(events.FilesStdin), r, callTimeout)
	return reply.Value, err
}

// CopyLog copies a subagent's stdout or stderr to w: from r.Offset, or the last
// r.Tail lines, to what is its end now; with Follow until the subagent has ended
// and all is copied. It returns the offset behind the last byte copied.
func (c *Client) CopyLog(ctx context.Context, w io.Writer, r events.FileRequest) (int64, error) {
	return c.copyFile(ctx, w, events.FilesLogs, r)
}

// CopyTranscript is CopyLog for the transcript, which has no streams.
func (c *Client) CopyTranscript(ctx context.Context, w io.Writer, r events.FileRequest) (int64, error) {
	return c.copyFile(ctx, w, events.FilesTranscript, r)
}

func (c *Client) copyFile(ctx context.Context, w io.Writer, endpoint string, r events.FileRequest) (int64, error) {
	next := r.Offset
	err := c.eachPart(ctx, endpoint, r, func(part events.FileReply) error {
		if _, err := w.Write(part.Data); err != nil {
			return &writeError{fmt.Errorf("write the output of %s: %w", r.ID, err)}
		}
		next = part.Next
		return nil
	})
	return next, err
}

// EachLogPart is CopyLog for a reader of its parts. An error of each ends it and
// is returned.
func (c *Client) EachLogPart(ctx context.Context, r events.FileRequest, each func(events.FileReply) error) error {
	return c.eachPart(ctx, events.FilesLogs, r, each)
}

func (c *Client) eachPart(ctx context.Context, endpoint string, r events.FileRequest, each func(events.FileReply) error) error {
	size := int64(-1)
	var p pacer
	for {
		part, err := c.readFile(ctx, endpoint, r)
		if r.Follow && events.HasCode(err, events.CodeShuttingDown) {
			if err := c.standBy(ctx, &p); err != nil { // the next coordinator has the rest
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if part.Next != part.Offset+int64(len(part.Data)) {
			return events.Errorf(events.CodeInternal, events.LayerCoordinator, "%s of %s: %d bytes between offsets %d and %d", endpoint, r.ID, len(part.Data), part.Offset, part.Next)
		}
		if len(part.Data) > 0 {
			if err := each(part); err != nil {
				return err
			}
		}
		r.Offset, r.Tail = part.Next, nil
		if part.SubagentID != "" {
			r.ID = part.SubagentID // from here on it means the same one, even when a name moves on
		}
		if size < 0 {
			size = part.Size
		}
		switch {
		case part.EOF:
			return nil
		case !r.Follow && (r.Offset >= size || len(part.Data) == 0):
			return nil
		}
	}
}

// writeError is a failure of the caller's writer, not of the coordinator.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

const (
	// stdinKeepAlive is well within the 30 s after which a silent client counts
	// as gone.
	stdinKeepAlive = 10 * time.Second
)

// stdinPump feeds one command's stdin.
type stdinPump struct {
	c       *Client
	session string
	id      string
	offset  int64
	// closed is true once the command reads no more.
	closed bool
}

// run sends what r yields until its end, the end of ctx, or until the command
// reads no more. It closes r and returns when no Read of r is in flight.
func (p *stdinPump) run(ctx context.Context, r io.ReadCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := make(chan stdinPart)
	done := make(chan struct{})
	go func() {
		defer close(done)
		readParts(ctx, r, parts)
	}()
	err := p.send(ctx, parts)
	cancel()
	closeErr := r.Close()
	<-done
	if err == nil && closeErr != nil {
		err = fmt.Errorf("close the input of %s: %w", p.id, closeErr)
	}
	return err
}

type stdinPart struct {
	data []byte
	err  error
}

func readParts(ctx context.Context, r io.Reader, parts chan<- stdinPart) {
	for {
		buf := make([]byte, events.MaxStdinChunk)
		n, err := r.Read(buf)
		select {
		case parts <- stdinPart{data: buf[:n], err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (p *stdinPump) send(ctx context.Context, parts <-chan stdinPart) error {
	keep := time.NewTicker(stdinKeepAlive)
	defer keep.Stop()
	for !p.closed {
		select {
		case <-ctx.Done():
			return nil
		case <-keep.C:
			if err := p.deliver(ctx, nil, false); err != nil {
				return err
			}
		case part := <-parts:
			if len(part.data) > 0 {
				if err := p.deliver(ctx, part.data, false); err != nil {
					return err
				}
			}
			if part.err == nil {
				continue
			}
			if err := p.deliver(ctx, nil, true); err != nil {
				return err
			}
			if part.err != io.EOF {
				return fmt.Errorf("read the input of %s: %w", p.id, part.err)
			}
			return nil
		}
	}
	return nil
}

// notYet tells the answers that mean that the command has not taken the bytes
// and may take them later.
func notYet(err error) bool {
	e := events.AsError(err)
	if e == nil {
		return false
	}
	switch e.Code {
	case events.CodeTimeout, events.CodeNotRunning, events.CodeBusy, events.CodeUnreachable:
		return true
	}
	return false
}

// deliver sends data at the pump's offset until all of it was taken. A command
// that does not read yet makes it wait; ctx ends with the command.
func (p *stdinPump) deliver(ctx context.Context, data []byte, eof bool) error {
	var wait time.Duration
	for !p.closed {
		reply, err := p.c.Stdin(ctx, events.StdinRequest{ParentSessionID: p.session, ID: p.id, Offset: p.offset, Data: data, EOF: eof})
		switch {
		case ctx.Err() != nil:
			return nil
		case p.c.connected() && notYet(err):
			// Its pipe is full, or it has not started: the same bytes again.
		case err != nil:
			return fmt.Errorf("send the input of %s: %w", p.id, err)
		case reply.Closed:
			p.closed = true
			return nil
		case reply.Offset < p.offset || reply.Offset > p.offset+int64(len(data)):
			return events.Errorf(events.CodeInternal, events.LayerCoordinator, "send the input of %s: %d bytes were taken, between %d and %d were sent", p.id, reply.Offset, p.offset, p.offset+int64(len(data)))
		default:
			data = data[reply.Offset-p.offset:]
			p.offset = reply.Offset
			if len(data) == 0 {
				return nil
			}
		}
		wait = min(max(2*wait, minPause), maxPause)
		if pause(ctx, wait) != nil {
			return nil
		}
	}
	return nil
}
