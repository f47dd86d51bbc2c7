package child

import (
	"os"
	"sync"
	"time"

	"github.com/hayward-dev/hayward/events"
)

const (
	// stdinIdle is how long a client may be silent before it is taken for gone.
	stdinIdle = 30 * time.Second
	// maxStdinQueue bounds the messages that wait behind a write.
	maxStdinQueue = 8
)

// feed writes the command's stdin: the prompt, or what a client sends. One
// goroutine writes, so that a command that does not read holds up nobody else.
//
// A stream is numbered by offsets. What was taken before is answered and not
// written again; a gap is answered with ok false and the offset that is wanted.
type feed struct {
	out    *outbox
	stream bool
	wake   chan struct{} // one slot
	done   chan struct{}
	idle   *time.Timer // nil unless stream

	mu     sync.Mutex
	pipe   *os.File // guarded by mu; nil once closed
	taken  int64    // guarded by mu; written by run alone
	queue  []stdinMessage
	ending bool // guarded by mu; run returns
}

type stdinMessage struct {
	events.Control
	reply func(events.ControlReply)
}

// newFeed starts feeding pipe, which may be nil, with the prompt or, in mode
// stream, with messages.
func newFeed(spec events.ChildSpec, pipe *os.File, out *outbox) *feed {
	f := &feed{
		out: out, stream: spec.Stdin == events.StdinStream, pipe: pipe,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if f.stream {
		f.idle = time.AfterFunc(stdinIdle, func() {
			if f.shut() {
				f.out.note("stdin closed: no message from the client for " + stdinIdle.String())
			}
		})
	} else if pipe != nil {
		f.queue = []stdinMessage{{
			Control: events.Control{Data: []byte(spec.Prompt), EOF: true},
			reply:   func(events.ControlReply) {},
		}}
		f.notify()
	}
	go f.run()
	return f
}

// put takes a message of the client. It does not block; reply is called once.
func (f *feed) put(c events.Control, reply func(events.ControlReply)) {
	f.mu.Lock()
	if !f.stream || f.ending {
		answer := f.state(false)
		f.mu.Unlock()
		reply(answer)
		return
	}
	f.idle.Reset(stdinIdle)
	f.queue = append(f.queue, stdinMessage{c, reply})
	var oldest *stdinMessage
	var answer events.ControlReply
	if len(f.queue) > maxStdinQueue {
		// The oldest goes: its client has most likely asked again since.
		oldest, answer = &stdinMessage{reply: f.queue[0].reply}, f.state(false)
		f.queue = f.queue[1:]
	}
	f.mu.Unlock()
	f.notify()
	if oldest != nil {
		oldest.reply(answer)
	}
}

func (f *feed) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// state describes the stream; f.mu is held.
func (f *feed) state(ok bool) events.ControlReply {
	return events.ControlReply{OK: ok, Offset: f.taken, Closed: f.pipe == nil}
}

// shut closes the command's stdin and reports whether it was open. A write under
// way returns.
func (f *feed) shut() bool {
	f.mu.Lock()
	pipe := f.pipe
	f.pipe = nil
	f.mu.Unlock()
	if pipe == nil {
		return false
	}
	closeAll(pipe)
	return true
}

// close shuts stdin, answers what waits and ends the goroutine.
func (f *feed) close() {
	if f.idle != nil {
		f.idle.Stop()
	}
	f.shut()
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	f.notify()
	<-f.done
}

func (f *feed) run() {
	defer close(f.done)
	for range f.wake {
		for {
			f.mu.Lock()
			if len(f.queue) == 0 {
				ending := f.ending
				f.mu.Unlock()
				if ending {
					return
				}
				break
			}
			m := f.queue[0]
			f.queue = f.queue[1:]
			f.mu.Unlock()
			m.reply(f.write(m.Control))
		}
	}
}

// write writes what is new in c and returns the answer.
func (f *feed) write(c events.Control) events.ControlReply {
	f.mu.Lock()
	pipe, taken := f.pipe, f.taken
	f.mu.Unlock()

	end := c.Offset + int64(len(c.Data))
	ok := c.Offset >= 0 && c.Offset <= taken
	if ok && end > taken {
		if pipe == nil {
			ok = false
		} else {
			n, err := pipe.Write(c.Data[taken-c.Offset:])
			f.mu.Lock()
			f.taken += int64(n)
			f.mu.Unlock()
			if err != nil {
				// The command reads no more (EPIPE), or stdin was shut meanwhile.
				ok = false
				f.shut()
			}
		}
	}
	if ok && c.EOF {
		f.shut()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state(ok)
}
