package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// paths of a small tree, so that random bounds meet often.
var universe = func() []string {
	out := []string{"/"}
	for _, a := range []string{"/a", "/b", "/ab"} {
		out = append(out, a)
		for _, b := range []string{"/x", "/y"} {
			out = append(out, a+b)
			for _, c := range []string{"/1", "/2"} {
				out = append(out, a+b+c)
			}
		}
	}
	return out
}()

func drawBounds(t *rapid.T, label string) Bounds {
	paths := func(what string, most int) []string {
		return rapid.SliceOfN(rapid.SampledFrom(universe), 0, most).Draw(t, label+" "+what)
	}
	b := Bounds{
		Profile: label, ReadAll: rapid.Bool().Draw(t, label+" read all"), Readable: paths("readable", 3),
		Writable: paths("writable", 3), Closed: paths("closed", 2), Sockets: paths("sockets", 2),
		Network: Network(rapid.IntRange(0, 2).Draw(t, label+" network")),
		Tracing: rapid.Bool().Draw(t, label+" tracing"), PrivateTemp: rapid.Bool().Draw(t, label+" private temp"),
	}
	for _, p := range paths("denied", 2) {
		b.Denied = append(b.Denied, Denied{Path: p})
	}
	return b
}

// The intersection leaves what both leave, no more and no less, and intersecting
// again changes nothing.
func TestIntersect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outer, inner := drawBounds(t, "outer"), drawBounds(t, "inner")
		both, lost := Intersect(outer, inner)
		again, lostAgain := Intersect(outer, both)
		require.Empty(t, lostAgain)
		for _, path := range universe {
			require.Equal(t, outer.Reads(path) && inner.Reads(path), both.Reads(path), "read %s", path)
			require.Equal(t, outer.Writes(path) && inner.Writes(path), both.Writes(path), "write %s", path)
			require.Equal(t, both.Reads(path), again.Reads(path))
			require.Equal(t, both.Writes(path), again.Writes(path))
		}
		require.LessOrEqual(t, both.Network, outer.Network)
		require.LessOrEqual(t, both.Network, inner.Network)
		require.Equal(t, outer.Tracing && inner.Tracing, both.Tracing)
		require.Equal(t, outer.PrivateTemp || inner.PrivateTemp, both.PrivateTemp)
		for _, s := range both.Sockets {
			require.Contains(t, outer.Sockets, s)
			require.Contains(t, inner.Sockets, s)
		}
		for _, tree := range inner.Writable {
			if inner.Writes(tree) && !both.Writes(tree) {
				require.Contains(t, lost, tree)
			}
		}
	})
}

func TestIntersectLoses(t *testing.T) {
	outer := Bounds{Writable: []string{"/ws"}, Readable: []string{"/usr"}, Closed: []string{"/ws/.git/hooks"}}
	inner := Bounds{Writable: []string{"/ws/part", "/elsewhere", "/ws/.git/hooks"}, ReadAll: true}
	both, lost := Intersect(outer, inner)
	require.Equal(t, []string{"/ws/part"}, both.Writable)
	require.Equal(t, []string{"/usr", "/ws"}, both.Readable)
	require.Equal(t, []string{"/elsewhere", "/ws/.git/hooks"}, lost)
}
