package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
)

func TestReadItems(t *testing.T) {
	for _, c := range []struct {
		text string
		nul  bool
		want []string
	}{
		{"a\nb c\n", false, []string{"a", "b c"}},
		{"a\r\n\n\nb", false, []string{"a", "b"}},
		{"a\nb\x00c\x00\x00d", true, []string{"a\nb", "c", "d"}},
		{"", false, nil},
		{"\n\n", false, nil},
	} {
		got, err := ReadItems(strings.NewReader(c.text), c.nul)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%q", c.text)
	}
	_, err := ReadItems(strings.NewReader(strings.Repeat("x\n", MaxSubagents+1)), false)
	require.EqualError(t, err, "there are over 10000 items")
	_, err = ReadItems(strings.NewReader("a\n"+strings.Repeat("x", events.MaxArgvBytes+1)), false)
	require.ErrorContains(t, err, "read item 2: ")
	_, err = ReadItems(strings.NewReader(strings.Repeat(strings.Repeat("x", 40<<10)+"\n", 1<<10)), false)
	require.EqualError(t, err, "the items are over 33554432 bytes")
}

func TestForEach(t *testing.T) {
	f := ForEach{
		Name: "count", Items: []string{"libs/a b", "x"}, Command: []string{"wc", "-c", "in={}"}, Dir: "/w",
		Cwd: "{//}", Workspace: "{}", AddDirs: []string{"out/{/}", "/abs"}, Sandbox: "off", BestEffort: true,
		Env: map[string]string{"ITEM": "{/}"}, Labels: map[string]string{"part": "{//}"},
	}
	p, err := f.Resolve("stdin")
	require.NoError(t, err)
	require.Equal(t, &Plan{Name: "count", Path: "stdin", Dir: "/w", Subagents: []*Subagent{
		{
			Name: "libs-a-b", Entry: "libs-a-b", Item: "libs/a b", Command: []string{"wc", "-c", "in=libs/a b"},
			Cwd: "/w/libs", Workspace: "/w/libs/a b", AddDirs: []string{"/w/out/a b", "/abs"}, Sandbox: "off", SandboxBestEffort: true,
			Env: map[string]string{"ITEM": "a b"}, Labels: map[string]string{"part": "libs"},
		},
		{
			Name: "x", Entry: "x", Item: "x", Command: []string{"wc", "-c", "in=x"},
			Cwd: "/w", Workspace: "/w/x", AddDirs: []string{"/w/out/x", "/abs"}, Sandbox: "off", SandboxBestEffort: true,
			Env: map[string]string{"ITEM": "x"}, Labels: map[string]string{"part": "."},
		},
	}}, p)
}

func TestItemIsAppended(t *testing.T) {
	for about, c := range map[string]struct {
		f    ForEach
		want []string
	}{
		"nowhere":     {ForEach{Command: []string{"wc", "-c"}}, []string{"wc", "-c", "i"}},
		"in labels":   {ForEach{Command: []string{"wc"}, Labels: map[string]string{"l": "{}"}}, []string{"wc", "i"}},
		"in argument": {ForEach{Command: []string{"wc", "{}"}}, []string{"wc", "i"}},
		"in cwd":      {ForEach{Command: []string{"make"}, Cwd: "{}"}, []string{"make"}},
		"in env":      {ForEach{Command: []string{"make"}, Env: map[string]string{"X": "{/}"}}, []string{"make"}},
		"twice":       {ForEach{Command: []string{"cp", "{}", "{}.bak"}}, []string{"cp", "i", "i.bak"}},
	} {
		c.f.Items, c.f.Dir = []string{"i"}, "/w"
		p, err := c.f.Resolve("stdin")
		require.NoError(t, err, about)
		require.Equal(t, c.want, p.Subagents[0].Command, about)
	}
}

func TestItemNames(t *testing.T) {
	long := strings.Repeat("d/", 40) + "end"
	require.Equal(t, []string{
		"a", "a-2", "a-3", "libs-x.go", "item", "item-2", "item-x", "a-2-2",
	}, itemNames([]string{"a", "./a", "a/", "libs/x.go", "//", "..", "_x", "a 2"}))
	require.True(t, strings.HasSuffix(itemNames([]string{long})[0], "d-end"))
	require.Len(t, itemNames(slices.Repeat([]string{"same"}, MaxSubagents)), MaxSubagents)
}

// TestRandomItems: whatever the items, the names are valid and distinct, and the
// plan is one or says which item is at fault.
func TestRandomItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c./_-]{1,4}`), rapid.StringN(50, 90, -1)), 1, 20).Draw(t, "items")
		names := itemNames(items)
		seen := make(map[string]bool)
		for i, n := range names {
			require.True(t, events.ValidName(n) && !events.ValidID(n), "%q of %q", n, items[i])
			require.False(t, seen[n], n)
			seen[n] = true
		}
		p, err := ForEach{Name: "n", Items: items, Command: []string{"true", "{}"}, Dir: "/w"}.Resolve("list")
		if err != nil {
			var bad *Error
			require.True(t, errors.As(err, &bad))
			require.Contains(t, err.Error(), "list: item ")
			return
		}
		for _, s := range p.Subagents {
			spawn := s.spawn()
			spawn.ParentSessionID = "run"
			require.Nil(t, spawn.Validate())
		}
	})
}

func TestForEachFaults(t *testing.T) {
	for want, f := range map[string]ForEach{
		"list: holds no items":                                                             {Command: []string{"x"}},
		"list: there is no command; put it behind --":                                      {Items: []string{"x"}},
		`list: item 1, "i": the label run is set by the run itself`:                        {Items: []string{"i", "j"}, Command: []string{"x"}, Labels: map[string]string{"run": "x"}},
		`list: item 2, "\xff": is not UTF-8`:                                               {Items: []string{"ok", "\xff"}, Command: []string{"x"}},
		`list: item 1, "i": env: LD_PRELOAD loads code into other programs and is refused`: {Items: []string{"i"}, Command: []string{"x"}, Env: map[string]string{"LD_PRELOAD": "x"}},
	} {
		f.Dir = "/w"
		_, err := f.Resolve("list")
		require.EqualError(t, err, want)
	}
}

func ExampleForEach() {
	p, err := ForEach{Name: "size", Items: []string{"docs", "plans"}, Command: []string{"du", "-sk", "{}"}, Dir: "/repo"}.Resolve("stdin")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range p.Subagents {
		fmt.Println(s.Name, s.Command)
	}
	// Output:
	// docs [du -sk docs]
	// plans [du -sk plans]
}
