package spawner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/rundir"
	"github.com/hayward-dev/hayward/resume"
)

// adoptSpawner adopts a child that may spawn and ends its process.
func (a *adoption) adoptSpawner(t *testing.T, exited func(ctx context.Context) (int, error)) {
	a.ran(t)
	a.record.TempDir = filepath.Join(t.TempDir(), a.record.ID)
	require.NoError(t, os.Mkdir(a.record.TempDir, 0o700))
	a.cfg.Exited = func(ctx context.Context, _ string, _ int) (int, error) { return exited(ctx) }
	a.Adopt(events.Spec{ID: a.record.ID, Run: a.record.Run, Spawns: events.SpawnsOf([]string{events.AnyType})}, a.record)
	require.NoError(t, a.end.Close())
}

// The end of a spawner is not told, and nothing of it is removed, before what it
// spawned is gone, however often that has to be asked.
func TestEndWaitsForNested(t *testing.T) {
	a := newAdoption(t)
	answers := []func() (int, error){
		func() (int, error) { return 2, nil },
		func() (int, error) { return 0, context.DeadlineExceeded },
		func() (int, error) { return 1, nil },
		func() (int, error) { return 0, nil },
	}
	asked, early := 0, false
	a.adoptSpawner(t, func(context.Context) (int, error) {
		_, err := os.Stat(a.record.TempDir)
		early = early || len(a.ended) > 0 || err != nil
		asked++
		return answers[asked-1]()
	})
	receive(t, a.ended)
	require.Equal(t, len(answers), asked)
	require.False(t, early)
	require.NoDirExists(t, a.record.TempDir)
}

// A coordinator that ends leaves a spawner whose nested ones live to the next one, as
// it is.
func TestEndIsLeftToTheNext(t *testing.T) {
	for name, answer := range map[string]func(context.Context) (int, error){
		"the coordinator ends": func(context.Context) (int, error) {
			return 0, events.Errorf(events.CodeShuttingDown, events.LayerCoordinator, "it ends")
		},
		"the spawner closes": func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdoption(t)
			asked := make(chan struct{}, 1)
			a.adoptSpawner(t, func(ctx context.Context) (int, error) {
				asked <- struct{}{}
				return answer(ctx)
			})
			receive(t, asked)
			a.Spawner.Close()
			require.Empty(t, a.ended, "its end was told")
			require.DirExists(t, a.record.TempDir)
		})
	}
}

// The state of an agent is not hashed on while the coordinator leaves: the next one
// makes it.
func TestStateIsLeftToTheNext(t *testing.T) {
	a := newAdoption(t)
	work := t.TempDir()
	items, err := a.dir.OpenAppend(rundir.TranscriptFile)
	require.NoError(t, err)
	_, err = items.WriteString(`{"seq":1,"kind":"tool_call","tool":"Read","tool_id":"r","input":{"file_path":"` + work + `/a"}}` + "\n")
	require.NoError(t, errors.Join(err, items.Close()))
	c := newChild(a.Spawner, events.Spec{ID: a.record.ID, Run: 1, Agent: &events.AgentSpec{Runner: events.AgentClaude}})
	c.dir, c.space.cwd = a.dir, work
	report := &events.Report{Agent: &events.AgentResult{}}
	state := filepath.Join(a.dir.Path(), resume.StateDir, resume.ToolStateFile)

	require.True(t, c.keepState(report, nil))
	require.FileExists(t, state)
	require.NoError(t, os.Remove(state))
	a.Spawner.Close()
	require.False(t, c.keepState(report, nil))
	require.NoFileExists(t, state)
}
