package events

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What both allow is what each allows, in any order.
func TestSpawnsAnd(t *testing.T) {
	types := []string{"command", "explore", "plan", "x"}
	draw := func(t *rapid.T, label string) *Spawns {
		some := func(l string) []string {
			return rapid.SliceOfDistinct(rapid.SampledFrom(types), rapid.ID).Draw(t, label+l)
		}
		switch rapid.IntRange(0, 2).Draw(t, label) {
		case 0:
			return nil
		case 1:
			return &Spawns{Any: true, Except: some(" except")}
		}
		return &Spawns{Types: some(" types")}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		for _, typ := range append(types, "other", "Explore") {
			require.Equal(t, a.Allows(typ) && b.Allows(typ), a.And(b).Allows(typ), typ)
			require.Equal(t, a.And(b).Allows(typ), b.And(a).Allows(typ), typ)
			require.Equal(t, a.And(b).Allows(typ), ParseSpawns(a.And(b).String()).Allows(typ), typ)
		}
	})
}

func TestRPCSubjects(t *testing.T) {
	id := NewID()
	for _, request := range []string{"spawn", "logs", "ack.token-1"} {
		got, r, ok := ParseRPC(rpcSubject(id, request))
		require.True(t, ok)
		require.Equal(t, id, got)
		require.Equal(t, request, r)
	}
	for _, bad := range []string{ControlSubject(id), ChildSubject(id, ChildItem), rpcSubject("x", "spawn"), rpcSubject(id, ""), RequestSubject(KindSpawn)} {
		_, _, ok := ParseRPC(bad)
		require.False(t, ok, bad)
	}
	got, ok := RPCUserID(RPCUser(id))
	require.True(t, ok)
	require.Equal(t, id, got)
	for _, bad := range []string{id, "client", "client/rpc", "/rpc"} {
		_, ok := RPCUserID(bad)
		require.False(t, ok, bad)
	}
}

// A subagent's session is its own, whatever it says.
func TestDecodeChildRequest(t *testing.T) {
	id := NewID()
	for _, k := range Kinds {
		body := map[Kind]string{
			KindQuery: `{"parent_session_id":"other","ids":["abcd"]}`, KindCancel: `{"target":{"session":true}}`,
			KindOutstanding: `{"parent_prompt_id":"p"}`,
		}[k]
		e, err := DecodeChildRequest(k, id, []byte(body))
		require.Nil(t, err, k)
		b, merr := MarshalRecord(e)
		require.NoError(t, merr)
		require.Contains(t, string(b), `"parent_session_id":"`+id+`"`)
	}
	_, err := DecodeChildRequest("shutdown", id, nil)
	require.NotNil(t, err)
	_, err = DecodeChildRequest(KindSpawn, id, []byte(`{"parent_sesion_id":"x"}`))
	require.Equal(t, CodeInvalidRequest, err.Code)
}
