package lograte

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, seen := observer.New(zapcore.WarnLevel)
		log := zap.New(core)
		var l Logger
		for range 10_000 {
			l.Log(log.Warn, "no", zap.Int("a", 1))
		}
		require.Equal(t, burst, seen.Len())
		time.Sleep(11 * time.Second)
		l.Log(log.Warn, "no")
		l.Log(log.Warn, "no")
		require.Equal(t, burst+1, seen.Len())
		require.Equal(t, int64(10_000-burst), seen.All()[burst].ContextMap()["lines_left_out"])
		time.Sleep(time.Hour)
		for range 100 {
			l.Log(log.Warn, "no")
		}
		require.Equal(t, 2*burst+1, seen.Len())
	})
}
