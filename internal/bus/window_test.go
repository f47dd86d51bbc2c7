package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWindow(t *testing.T) {
	w := newWindow(copyBuffer)
	require.Len(t, w.next(0), smallBuffer)
	require.Len(t, w.next(smallBuffer), copyBuffer, "a full read: there is more")
	require.Len(t, w.next(copyBuffer), copyBuffer)
	require.Len(t, w.next(smallBuffer), copyBuffer)
	require.Len(t, w.next(smallBuffer-1), smallBuffer)
	require.Nil(t, w.large)

	// No read takes more than the limit: the bucket would never let it through.
	w = newWindow(smallBuffer + 1)
	require.Len(t, w.next(smallBuffer), smallBuffer+1)
	w.release()
	w = newWindow(10)
	require.Len(t, w.next(0), 10)
	require.Len(t, w.next(10), 10)
}
