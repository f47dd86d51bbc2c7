package bus

import "sync"

const (
	// copyBuffer is what one read of a bridge takes at most.
	copyBuffer = 32 << 10
	// smallBuffer holds what a connection at rest says. Most are, and a thousand of
	// them would hold 64 MB that nothing ever fills.
	smallBuffer = 2 << 10
)

var largeBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// window is the buffer of one direction of a bridge: small, and a large one of the
// pool while much comes.
type window struct {
	small []byte
	large *[copyBuffer]byte // nil while little comes
	limit int               // of one read
}

func newWindow(limit int) *window {
	return &window{small: make([]byte, min(smallBuffer, limit)), limit: min(copyBuffer, limit)}
}

// next is where the next read goes, after one of n bytes that nobody needs any more.
func (w *window) next(n int) []byte {
	if n < len(w.small) {
		w.release()
	} else if w.large == nil && w.limit > len(w.small) {
		w.large = largeBuffers.Get().(*[copyBuffer]byte)
	}
	if w.large == nil {
		return w.small
	}
	return w.large[:w.limit]
}

func (w *window) release() {
	if w.large != nil {
		largeBuffers.Put(w.large)
		w.large = nil
	}
}
