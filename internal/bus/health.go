package bus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	natsd "github.com/nats-io/nats-server/v2/server"
)

// storeHealth remembers whether the streams take writes. After a failed write,
// on a full disk for example, a stream refuses all others without an answer
// until the store is reopened.
type storeHealth struct {
	mu   sync.Mutex
	ctx  context.Context
	fail context.CancelCauseFunc
}

func newStoreHealth() *storeHealth {
	h := &storeHealth{}
	h.ctx, h.fail = context.WithCancelCause(context.Background())
	return h
}

func (h *storeHealth) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail(err)
}

func (h *storeHealth) current() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ctx
}

func (h *storeHealth) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx, h.fail = context.WithCancelCause(context.Background())
}

// StoreHealth returns a context that ends when the store stops taking writes;
// its cause says why. ReopenStore replaces it.
func (s *Server) StoreHealth() context.Context { return s.store.current() }

// ReopenStore closes JetStream and opens it again, which is the only way out of
// a failed write. Requests meanwhile find no JetStream. One call at a time; it
// cannot be interrupted, and reads every stream's state.
func (s *Server) ReopenStore(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("reopen store: %w", err)
	}
	if err := s.nats.DisableJetStream(); err != nil {
		return s.stillBroken(fmt.Errorf("close it: %w", err))
	}
	// Closing may fail to write once more; what fails from here on is new.
	s.store.renew()
	err := s.nats.EnableJetStream(&natsd.JetStreamConfig{
		StoreDir: s.opts.StoreDir, MaxStore: s.opts.MaxStore, MaxMemory: maxMemory,
		SyncAlways: s.opts.SyncAlways, SyncInterval: s.opts.SyncInterval,
		Strict: true, CompressOK: true,
	})
	if err != nil {
		return s.stillBroken(fmt.Errorf("open it: %w", err))
	}
	if h := s.nats.Healthz(&natsd.HealthzOptions{}); h.Error != "" {
		return s.stillBroken(errors.New(h.Error))
	}
	return nil
}

// stillBroken keeps the store marked so that the next put tries again.
func (s *Server) stillBroken(err error) error {
	s.store.failed(err)
	return fmt.Errorf("reopen store: %w", err)
}

// streamDescription and streamChecksum describe a stream, in its directory. The
// server does not open a stream where they do not fit each other.
const (
	streamDescription = natsd.JetStreamMetaFile
	streamChecksum    = natsd.JetStreamMetaFileSum
)

// SalvageStream puts the description of a stream that the server did not open
// aside. Making the stream then writes a new one and finds the messages that are
// there. It returns false if there are none.
func (s *Server) SalvageStream(name string) (bool, error) {
	dir := filepath.Join(s.nats.StoreDir(), natsd.DEFAULT_GLOBAL_ACCOUNT, "streams", name)
	files, err := os.ReadDir(filepath.Join(dir, "msgs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if !slices.ContainsFunc(files, func(f fs.DirEntry) bool { return filepath.Ext(f.Name()) == ".blk" }) {
		return false, nil
	}
	for _, file := range []string{streamDescription, streamChecksum} {
		path := filepath.Join(dir, file)
		if err := os.Rename(path, path+".damaged"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}
