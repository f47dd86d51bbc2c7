package events

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRequestRoundTrip: what a client encodes is what the coordinator decodes,
// and a valid request stays valid.
func TestRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := genRequest().Draw(t, "request")
		body, err := Marshal(sent)
		require.NoError(t, err)
		got, refused := DecodeRequest(sent.EventKind(), body)
		require.Nil(t, refused)
		again, err := Marshal(got)
		require.NoError(t, err)
		require.Equal(t, string(body), string(again))
	})
}

// TestWireRoundTrip: every other value on the wire or on disk comes back as it
// was written.
func TestWireRoundTrip(t *testing.T) {
	t.Run("SpawnReply", roundTrips[SpawnReply])
	t.Run("QueryReply", roundTrips[QueryReply])
	t.Run("CancelReply", roundTrips[CancelReply])
	t.Run("ListActiveReply", roundTrips[ListActiveReply])
	t.Run("CompletionsReply", roundTrips[CompletionsReply])
	t.Run("OutstandingReply", roundTrips[OutstandingReply])
	t.Run("Error", roundTrips[Error])
	t.Run("Record", roundTrips[Record])
	t.Run("Spec", roundTrips[Spec])
	t.Run("FeedEvent", roundTrips[FeedEvent])
	t.Run("ChildSpec", roundTrips[ChildSpec])
	t.Run("Started", roundTrips[Started])
	t.Run("Heartbeat", roundTrips[Heartbeat])
	t.Run("Item", roundTrips[Item])
	t.Run("Report", roundTrips[Report])
	t.Run("Control", roundTrips[Control])
	t.Run("ControlReply", roundTrips[ControlReply])
	t.Run("FileRequest", roundTrips[FileRequest])
	t.Run("FileReply", roundTrips[FileReply])
	t.Run("InspectReply", roundTrips[InspectReply])
	t.Run("StdinRequest", roundTrips[StdinRequest])
	t.Run("StatusReply", roundTrips[StatusReply])
	t.Run("ShutdownRequest", roundTrips[ShutdownRequest])
	t.Run("ShutdownReply", roundTrips[ShutdownReply])
}

func roundTrips[T any](t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := genWire[T]().Draw(t, "value")
		body, err := MarshalRecord(sent)
		require.NoError(t, err)
		var got T
		require.NoError(t, DecodeRecord(body, &got))
		again, err := MarshalRecord(got)
		require.NoError(t, err)
		require.Equal(t, string(body), string(again))

		var strict T
		require.Nil(t, DecodeStrict(body, &strict), "our own encoding is strictly valid")
		require.Equal(t, got, strict)
	})
}
