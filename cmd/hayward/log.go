package main

import (
	"io"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLog logs to w, one line for each entry.
func newLog(w io.Writer, level zapcore.Level) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.TimeEncoderOfLayout(time.RFC3339Nano)
	config.EncodeLevel = zapcore.CapitalLevelEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.Lock(zapcore.AddSync(w)), level))
}

// inProcessLog is the log of a daemon in this process. What it warns of is for
// the person at the terminal, as a line like those of the verb itself.
func (a *app) inProcessLog() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{
		LevelKey: "level", MessageKey: "message", ConsoleSeparator: " ",
		EncodeLevel: func(l zapcore.Level, line zapcore.PrimitiveArrayEncoder) {
			word := "warning"
			if l > zapcore.WarnLevel {
				word = "error"
			}
			line.AppendString("hayward: " + word + " of the daemon in this process:")
		},
		EncodeDuration: zapcore.StringDurationEncoder,
	})
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(sayer{a})), zapcore.WarnLevel))
}

// sayer says each line that is written to it.
type sayer struct{ a *app }

func (s sayer) Write(line []byte) (int, error) {
	s.a.say("%s", oneLine(string(line[:len(line)-1])))
	return len(line), nil
}
