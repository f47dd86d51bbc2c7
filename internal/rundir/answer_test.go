package rundir

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// The output of a run is its stdout, and the answer of an agent once there is one.
func TestAnswerIsTheOutput(t *testing.T) {
	r := openRoot(t)
	d := create(t, r)
	put(t, d, StdoutFile, "{\"type\":\"result\"}\n")
	name, err := d.OutputFile()
	require.NoError(t, err)
	require.Equal(t, StdoutFile, name)

	require.NoError(t, d.WriteAnswer("first"))
	require.NoError(t, d.WriteAnswer("The answer.\n"))
	name, err = d.OutputFile()
	require.NoError(t, err)
	require.Equal(t, AnswerFile, name)
	out, err := d.Output(name, events.MaxRecordOutput, events.RecordOutputHead, events.RecordOutputTail)
	require.NoError(t, err)
	require.Equal(t, "The answer.\n", out.Text)
	require.EqualValues(t, 12, out.Bytes)
	require.Equal(t, d.ID()+"/answer.txt", out.Ref)

	require.NoError(t, d.WriteAnswer(""))
	name, err = d.OutputFile()
	require.NoError(t, err)
	require.Equal(t, AnswerFile, name, "an agent that said nothing has no output")
}
