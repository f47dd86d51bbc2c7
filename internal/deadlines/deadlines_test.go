package deadlines

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every member of a Set is described once and has a default.
func TestEveryDeadlineIsDescribed(t *testing.T) {
	names, places := map[string]bool{}, map[*time.Duration]bool{}
	var s Set
	for _, d := range All {
		require.Positive(t, d.Default, d.Name)
		require.NotEmpty(t, d.Bounds, d.Name)
		require.NotEmpty(t, d.At, d.Name)
		require.False(t, names[d.Name], d.Name)
		require.False(t, places[d.Of(&s)], d.Name)
		names[d.Name], places[d.Of(&s)] = true, true
	}
	require.Len(t, All, reflect.TypeFor[Set]().NumField())
}

func TestWithDefaults(t *testing.T) {
	s := Set{Grace: 3 * time.Second, Put: -1}.WithDefaults()
	want := Default()
	want.Grace = 3 * time.Second
	require.Equal(t, want, s)
}
