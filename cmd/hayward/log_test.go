package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func TestInProcessLogIsForPeople(t *testing.T) {
	var stderr bytes.Buffer
	log := (&app{stderr: &stderr}).inProcessLog().Named("service")
	log.Info("left")
	require.Empty(t, stderr.String())
	log.Warn("not\x1b[31m taken", zap.String("id", "x"), zap.Error(errors.New("no\nspace")))
	log.Error("gone", zap.Stack("stack"))
	require.Regexp(t, `^hayward: warning of the daemon in this process: not taken \{"id": "x", "error": "no\\nspace"\}
hayward: error of the daemon in this process: gone \{"stack": ".*"\}
$`, stderr.String())
}
