package daemon

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
)

// askTimeout bounds a question of the daemon to its own drain loop.
const askTimeout = 5 * time.Second

// files serves what subagents wrote. It is also the coordinator's port of that
// name.
type files struct {
	root    rundir.Root
	tracker *tracker
	// usage is what the gateway has counted for a live subagent, and for its tree.
	usage   func(id string) (own, tree events.Usage)
	control controller
	// ask puts an event to the coordinator on behalf of a client.
	ask func(context.Context, events.SubagentEvent) (any, *events.Error)
	// askAs does so on behalf of a subagent.
	askAs func(ctx context.Context, principal string, e events.SubagentEvent) (any, *events.Error)
	// lookup returns the durable record that a client calls ref.
	lookup func(ctx context.Context, session, ref string) (events.Record, *events.Error)
	// cost is what a live agent has cost so far, nil if that is not known. It does
	// not block.
	cost func(id string) *events.Cost
}

// Output implements [coordinator.Files].
func (f *files) Output(id string, limit int) (events.Output, error) {
	dir, err := f.root.Open(id)
	if err != nil {
		return events.Output{}, err
	}
	defer dir.Close()
	head := min(limit/4, events.ReplyOutputHead)
	name, err := dir.OutputFile()
	if err != nil {
		return events.Output{}, err
	}
	out, err := dir.Output(name, limit, head, limit-head)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it never started: no output
	}
	out.Ref = id + "/" + name
	out.Path = filepath.Join(dir.Path(), name)
	return out, err
}

// Progress implements [coordinator.Files].
func (f *files) Progress(id string) *events.Progress {
	p := f.tracker.progress(id)
	if p == nil {
		return nil
	}
	if own, tree := f.usage(id); tree != (events.Usage{}) {
		p.TreeUsage = &tree
		if own != (events.Usage{}) {
			p.Usage = &own
		}
	}
	if p.Agent != nil && f.cost != nil {
		at := *p.Agent
		at.Cost = f.cost(id)
		p.Agent = &at
	}
	return p
}

// find resolves what a client calls a subagent.
func (f *files) find(ctx context.Context, session, ref string) (events.Snapshot, *events.Error) {
	if !events.ValidRef(ref) {
		return events.Snapshot{}, events.Errorf(events.CodeInvalidID, events.LayerGate, "%q is neither an id nor a name", ref)
	}
	reply, err := f.ask(ctx, events.Query{ParentSessionID: session, IDs: []string{ref}})
	if err != nil {
		return events.Snapshot{}, err
	}
	q, ok := reply.(events.QueryReply)
	if !ok || len(q.Snapshots) != 1 {
		return events.Snapshot{}, events.Errorf(events.CodeUnknownID, events.LayerGate, "there is no subagent %s", ref)
	}
	return q.Snapshots[0], nil
}

func (f *files) logs(ctx context.Context, data []byte) (any, *events.Error) {
	var req events.FileRequest
	if err := events.DecodeStrict(data, &req); err != nil {
		return nil, err
	}
	name := rundir.StdoutFile
	switch req.Stream {
	case "", "stdout":
	case "stderr":
		name = rundir.StderrFile
	default:
		return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "logs: stream %q is neither stdout nor stderr", req.Stream)
	}
	return f.read(ctx, req, name)
}

func (f *files) transcript(ctx context.Context, data []byte) (any, *events.Error) {
	var req events.FileRequest
	if err := events.DecodeStrict(data, &req); err != nil {
		return nil, err
	}
	if req.Stream != "" {
		return nil, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "transcript: it has no streams")
	}
	return f.read(ctx, req, rundir.TranscriptFile)
}

// read answers a request for a part of a file, waiting for more if asked to.
func (f *files) read(ctx context.Context, req events.FileRequest, name string) (any, *events.Error) {
	timeout, err := checkRead(req)
	if err != nil {
		return nil, err
	}
	snap, err := f.find(ctx, req.ParentSessionID, req.ID)
	if err != nil {
		return nil, err
	}
	id := snap.SubagentID
	changed, release := f.tracker.follow(id)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		wake := changed()
		// The state first, then the bytes: an end seen here has all its bytes there.
		if snap, err = f.find(context.WithoutCancel(ctx), "", id); err != nil {
			return nil, err
		}
		reply, err := f.readOnce(id, name, req)
		if err != nil {
			return nil, err
		}
		reply.EOF = snap.State == events.StateCompleted && reply.Next >= reply.Size
		if !req.Follow || len(reply.Data) > 0 || reply.EOF {
			return reply, nil
		}
		req.Offset, req.Tail = reply.Next, nil
		select {
		case <-wake:
		case <-ctx.Done():
			return reply, nil
		}
	}
}

func checkRead(req events.FileRequest) (time.Duration, *events.Error) {
	timeout := int64(events.DefaultFollowMS)
	if req.TimeoutMS != nil {
		timeout = *req.TimeoutMS
	}
	switch {
	case req.Offset < 0, req.Max < 0, req.Max > events.MaxChunk:
		return 0, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "read: offset and max must be positive, max at most %d", events.MaxChunk)
	case req.Tail != nil && (req.Offset != 0 || *req.Tail < 0):
		return 0, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "read: tail must be positive and excludes offset")
	case timeout < 0, timeout > events.MaxFollowMS:
		return 0, events.Errorf(events.CodeInvalidRequest, events.LayerGate, "read: timeout_ms is not between 0 and %d", events.MaxFollowMS)
	}
	return time.Duration(timeout) * time.Millisecond, nil
}

func (f *files) readOnce(id, name string, req events.FileRequest) (events.FileReply, *events.Error) {
	reply := events.FileReply{SubagentID: id, Data: []byte{}, Offset: req.Offset, Next: req.Offset}
	dir, err := f.root.Open(id)
	if err != nil {
		return reply, events.Errorf(events.CodeStoreDamaged, events.LayerWorkspace, "read %s of %s: %w", name, id, err)
	}
	defer dir.Close()
	if req.Tail != nil {
		if reply.Offset, err = dir.TailOffset(name, *req.Tail); err == nil {
			reply.Next = reply.Offset
		}
	}
	most := req.Max
	if most == 0 {
		most = events.MaxChunk
	}
	if err == nil {
		reply.Data, reply.Size, err = dir.ReadAt(name, reply.Offset, most)
		reply.Next = reply.Offset + int64(len(reply.Data))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return reply, nil // not started yet: empty
	}
	if err != nil {
		return reply, events.Errorf(events.CodeStorageFailed, events.LayerWorkspace, "read %s of %s: %w", name, id, err)
	}
	return reply, nil
}

// stdin hands a chunk to a running command; the answer comes once it was taken.
func (f *files) stdin(ctx context.Context, data []byte) (any, *events.Error) {
	var req events.StdinRequest
	if err := events.DecodeStrict(data, &req); err != nil {
		return nil, err
	}
	if req.Offset < 0 || len(req.Data) > events.MaxStdinChunk {
		return nil, events.Errorf(events.CodeTooLarge, events.LayerGate, "stdin: a chunk has at most %d bytes", events.MaxStdinChunk)
	}
	snap, err := f.find(ctx, req.ParentSessionID, req.ID)
	if err != nil {
		return nil, err
	}
	if snap.State == events.StateCompleted {
		return events.ControlReply{OK: true, Closed: true, Offset: req.Offset}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, stdinTimeout)
	defer cancel()
	reply, controlErr := f.control.Control(ctx, snap.SubagentID, events.Control{
		Kind: events.ControlStdin, Data: req.Data, Offset: req.Offset, EOF: req.EOF,
	})
	if controlErr != nil {
		return nil, events.AsError(controlErr)
	}
	return reply, nil
}

// stdinTimeout bounds one stdin request: a command that does not read holds its
// client, who asks again with the same offset.
const stdinTimeout = 10 * time.Second

// inspect shows everything about one subagent. Environment values stay hidden.
func (f *files) inspect(ctx context.Context, data []byte) (any, *events.Error) {
	var req events.InspectRequest
	if err := events.DecodeStrict(data, &req); err != nil {
		return nil, err
	}
	snap, err := f.find(ctx, req.ParentSessionID, req.ID)
	if err != nil {
		return nil, err
	}
	record, err := f.lookup(ctx, "", snap.SubagentID)
	if err != nil {
		return nil, err
	}
	record.TokenHash = "" // of no use to a reader
	reply := events.InspectReply{Snapshot: snap, Record: record, Dir: filepath.Join(f.root.Path(), snap.SubagentID)}
	dir, openErr := f.root.Open(snap.SubagentID)
	if openErr != nil {
		return nil, events.Errorf(events.CodeStoreDamaged, events.LayerWorkspace, "inspect %s: %w", snap.SubagentID, openErr)
	}
	defer dir.Close()
	spec, specErr := dir.ReadSpec()
	if specErr != nil {
		return nil, events.Errorf(events.CodeStoreDamaged, events.LayerWorkspace, "inspect %s: %w", snap.SubagentID, specErr)
	}
	hideValues(spec.Request.Env)
	if spec.Agent != nil {
		for i := range spec.Agent.MCPServers {
			spec.Agent.MCPServers[i].Config = nil // it may hold secrets
		}
		if spec.Agent.Hooks != nil {
			spec.Agent.Hooks = []byte(`"not shown"`) // and so may they
		}
	}
	reply.Spec = &spec
	return reply, nil
}

var _ coordinator.Files = (*files)(nil)
