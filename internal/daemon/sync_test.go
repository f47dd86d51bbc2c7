package daemon

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"
)

func TestSyncEvery(t *testing.T) {
	core, logs := zapobserver.New(zap.ErrorLevel)
	d := &daemon{log: zap.New(core)}
	calls := make(chan struct{}, 100)
	stop := d.syncEvery(time.Millisecond, func() error {
		calls <- struct{}{}
		return errors.New("no disk")
	})
	<-calls
	<-calls // again and again
	stop()
	require.Contains(t, logs.All()[0].ContextMap()["error"], "no disk")

	last := 0
	d.syncEvery(time.Hour, func() error { last++; return nil })()
	require.Equal(t, 1, last, "the last call is that of stop")
}
