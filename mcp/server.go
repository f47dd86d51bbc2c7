package mcp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hayward-dev/hayward/agents"
	"github.com/hayward-dev/hayward/client"
	"github.com/hayward-dev/hayward/events"
)

const (
	// DefaultCallLimit bounds a call: clients commonly give up after 60 s.
	DefaultCallLimit = 45 * time.Second
	// maxCalls bounds the calls in flight of one connection; more are refused.
	maxCalls = 64
	// lastAck and lastCancel bound what is done once the connection has ended.
	lastAck    = 5 * time.Second
	lastCancel = 60 * time.Second
	// progressEvery is how often a call that waits reports progress.
	progressEvery = 5 * time.Second
)

// Options configure a [Server].
type Options struct {
	// Connect reaches the coordinator. It is called when the first call needs it,
	// and again until it succeeds. The server closes the client.
	Connect func(context.Context) (*client.Client, error)
	// Session owns the subagents. Minted: it is this connection's alone.
	Session string
	Minted  bool
	// Version is the version of the program.
	Version string
	// Dir is the absolute directory that subagents start in, or below, unless it is
	// in one of AddDirs, which they may write as well.
	Dir     string
	AddDirs []string
	// Prepare gives a spawn its defaults, before what the model asks for.
	Prepare func(*events.Spawn)
	// Sandbox is the profile of a spawn that names none; Sandboxes are all that may
	// be named.
	Sandbox   string
	Sandboxes []string
	// Inside: the server runs in a subagent, and spawns in its name. MaySpawn are the
	// types that it may spawn then.
	Inside   bool
	MaySpawn *events.Spawns
	// Types are the agent types, Limits the limits and deadlines in force by the
	// names that status has for them: both are told to the model.
	Types  []agents.Definition
	Limits map[string]int64
	// CallLimit bounds each call. Default [DefaultCallLimit].
	CallLimit time.Duration
	// ProgressEvery is how often progress is reported. Default 5 s.
	ProgressEvery time.Duration
	// CancelOnExit cancels the live subagents of this connection at its end.
	CancelOnExit bool
	// Log takes what goes wrong where no answer can say it.
	Log func(format string, args ...any)
}

// Server serves one connection.
type Server struct {
	o      Options
	ledger *ledger
	slots  chan struct{}
	// connecting is held by the one call that connects.
	connecting chan struct{}

	mu sync.Mutex
	// c is the client once there is one, spawned the ids of this connection's
	// subagents. Guarded by mu.
	c       *client.Client
	spawned map[string]struct{}
}

// NewServer makes a server for one connection.
func NewServer(o Options) *Server {
	if o.CallLimit <= 0 {
		o.CallLimit = DefaultCallLimit
	}
	if o.ProgressEvery <= 0 {
		o.ProgressEvery = progressEvery
	}
	if o.Prepare == nil {
		o.Prepare = func(*events.Spawn) {}
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return &Server{
		o: o, ledger: newLedger(), slots: make(chan struct{}, maxCalls),
		connecting: make(chan struct{}, 1), spawned: make(map[string]struct{}),
	}
}

// Run serves until the client closes its side or ctx ends, and then does what is
// left to do for the session. Either end is no error.
func (s *Server) Run(ctx context.Context, t sdk.Transport) error {
	life, end := context.WithCancel(ctx)
	defer end()
	server := sdk.NewServer(
		&sdk.Implementation{Name: "hayward", Title: "Hayward subagents", Version: s.o.Version},
		&sdk.ServerOptions{
			Instructions: s.instructions(),
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		})
	for _, t := range tools {
		server.AddTool(s.describe(t), s.handler(life, t))
	}
	err := server.Run(context.WithoutCancel(ctx), &transport{Transport: t, life: life, ledger: s.ledger, end: end})
	return errors.Join(err, s.finish(context.WithoutCancel(ctx)))
}

// client connects to the coordinator, once.
func (s *Server) client(ctx context.Context) (*client.Client, error) {
	select {
	case s.connecting <- struct{}{}:
		defer func() { <-s.connecting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c := s.connected(); c != nil {
		return c, nil
	}
	c, err := s.o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c = c
	return c, nil
}

func (s *Server) connected() *client.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c
}

// acknowledge marks the ends as read that the client has gone on from.
func (s *Server) acknowledge(ctx context.Context, c *client.Client) error {
	waitCtx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	ends := s.ledger.takeDue(waitCtx)
	for page := range slices.Chunk(ends, events.MaxAckIDs) {
		if _, err := c.Completions(ctx, events.Completions{ParentSessionID: s.o.Session, AckIDs: page, Max: new(int)}); err != nil {
			s.ledger.putBack(ends)
			return err
		}
	}
	return nil
}

// finish does what the end of the connection asks for.
func (s *Server) finish(ctx context.Context) error {
	c := s.connected()
	if c == nil {
		return nil
	}
	var errs []error
	if s.o.Minted {
		s.ledger.confirm()
		ackCtx, cancel := context.WithTimeout(ctx, lastAck)
		if err := s.acknowledge(ackCtx, c); err != nil {
			// They stay unread, which loses nothing.
			s.o.Log("acknowledge the last answers: %v", err)
		}
		cancel()
	}
	if s.o.CancelOnExit {
		cancelCtx, cancel := context.WithTimeout(ctx, lastCancel)
		errs = append(errs, s.cancelSpawned(cancelCtx, c))
		cancel()
	}
	return errors.Join(append(errs, c.Close())...)
}

// cancelSpawned ends what this connection spawned and still lives.
func (s *Server) cancelSpawned(ctx context.Context, c *client.Client) error {
	live, err := c.ListAll(ctx, events.ListActive{ParentSessionID: s.o.Session})
	if err != nil {
		return err
	}
	var ids []string
	s.mu.Lock()
	for _, a := range live.Subagents {
		if _, mine := s.spawned[a.SubagentID]; mine {
			ids = append(ids, a.SubagentID)
		}
	}
	s.mu.Unlock()
	var errs []error
	for page := range slices.Chunk(ids, events.MaxQueryIDs) {
		_, err := c.Cancel(ctx, events.Cancel{
			ParentSessionID: s.o.Session, Target: events.CancelTarget{IDs: page}, Reason: events.ReasonParent, Actor: "mcp: the connection ended",
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
