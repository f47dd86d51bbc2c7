//go:build linux && cgo

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/sandbox/policy"
)

// nestedVariable asks for a number of random pairs in the place of a few.
const nestedVariable = "HAYWARD_TEST_NESTED"

// capabilitySet is a random profile and workspace in a small tree.
type capabilitySet struct {
	Base, Workspace           string
	ReadOnly, ReadWrite, Deny []string
	Closed                    bool
}

func drawSet(t *rapid.T, dirs, files []string) capabilitySet {
	some := func(of []string, most int, label string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, most, rapid.ID).Draw(t, label)
	}
	return capabilitySet{
		Base:      rapid.SampledFrom([]string{Workspace, Devbox, ReadOnly, Strict}).Draw(t, "base"),
		Workspace: rapid.SampledFrom(dirs).Draw(t, "workspace"),
		ReadOnly:  some(dirs, 2, "read_only"), ReadWrite: some(dirs, 2, "read_write"), Deny: some(files, 3, "deny"),
		Closed: rapid.Bool().Draw(t, "closed network"),
	}
}

// nested is the stage of the pairs.
type nested struct {
	*world
	bin, tree   string
	dirs, files []string
}

func newNested(t *testing.T) *nested {
	w := newWorld(t)
	n := &nested{world: w, bin: w.outside + "/bin", tree: w.outside + "/t"}
	for _, d := range []string{"", "/a", "/a/x", "/a/y", "/b", "/b/x"} {
		n.dirs = append(n.dirs, n.tree+d)
		n.files = append(n.files, n.tree+d+"/one", n.tree+d+"/two")
		require.NoError(t, os.MkdirAll(n.tree+d+"/.git/hooks", 0o755))
		put(t, n.tree+d+"/.git/config", "")
	}
	for _, f := range n.files {
		put(t, f, "text")
	}
	require.NoError(t, os.Mkdir(n.bin, 0o755))
	b, err := os.ReadFile(w.probe)
	require.NoError(t, err)
	w.command = n.bin + "/probe"
	require.NoError(t, os.WriteFile(w.command, b, 0o755))
	return n
}

// request is one for the set, whose profile is called name.
func (n *nested) request(t *testing.T, name string, c capabilitySet) Request {
	t.Helper()
	list := func(paths []string) string {
		b, err := json.Marshal(append([]string{}, paths...))
		require.NoError(t, err)
		return string(b)
	}
	text := fmt.Sprintf("[profiles.%s]\nextends = %q\nread_only = %s\nread_write = %s\ndeny = %s\nrestrict_network = %v\n",
		name, c.Base, list(append(c.ReadOnly, n.bin)), list(c.ReadWrite), list(c.Deny), c.Closed)
	r := n.world.request()
	require.NoError(t, r.Profiles.Add("sandbox.toml", text, false))
	r.Profile, r.Workspace, r.Cwd, r.Inputs = name, c.Workspace, "", nil
	return r
}

// actions are what is tried; run makes the names of what is made unique.
func (n *nested) actions(t *testing.T, run string) []string {
	t.Helper()
	var out []string
	for _, f := range n.files {
		out = append(out, "read|"+f, "append|"+f, "chmod|"+f+"|0644")
	}
	for i, d := range n.dirs {
		put(t, d+"/seed-"+run, "")
		out = append(out, "list|"+d, "create|"+d+"/new-"+run, "mkdir|"+d+"/dir-"+run, "create|"+d+"/.git/hooks/"+run,
			"append|"+d+"/.git/config", "link|"+n.files[i]+"|"+d+"/link-"+run,
			"rename|"+d+"/seed-"+run+"|"+n.dirs[(i+1)%len(n.dirs)]+"/moved-"+run)
	}
	return append(out, fmt.Sprintf("socket|%d|%d|0", unix.AF_INET, unix.SOCK_STREAM),
		fmt.Sprintf("syscall|%d|0|0|0|0|0|0", unix.SYS_PROCESS_VM_READV))
}

// try runs the actions under a plan, or under second within it.
func (n *nested) try(t *testing.T, run string, p, second *Plan) []string {
	t.Helper()
	actions := n.actions(t, run)
	l, words := launch{}, actions
	if second != nil {
		words = append([]string{"stack"}, actions...)
		l.files = map[int]*os.File{
			handoff.FDSpec: second.PlanFile, handoff.FDStdout: second.RulesetFile, handoff.FDStderr: second.FilterFile,
		}
	}
	o := n.run(t, p, l, words...)
	report, e := p.Report(o.records)
	require.Nil(t, e, "%v %s", e, o.stderr)
	require.True(t, report.Active)
	require.Zero(t, o.state.ExitCode(), o.stderr)
	var out []string
	for _, a := range actions {
		require.NotEmpty(t, o.results[a], a)
		out = append(out, o.results[a])
	}
	return out
}

func permitted(result string) bool {
	return result != "EACCES" && result != "EPERM" && result != "EROFS" && result != "EXDEV"
}

// What is spawned within a sandbox may do what both sandboxes let it do: compared,
// action by action, with each of them alone and with the kernel applying the rules
// of the inner one within the outer one.
func TestNestedIntersection(t *testing.T) {
	requireEnforceable(t)
	pairs := 8
	if text := os.Getenv(nestedVariable); text != "" {
		_, err := fmt.Sscan(text, &pairs)
		require.NoError(t, err)
	}
	n := newNested(t)
	flat := probeFlat()
	compared, refusals, tried, allowed := 0, 0, 0, 0
	var stricter []string
	for seed := 0; compared < pairs; seed++ {
		require.Less(t, seed, 40*pairs, "hardly a pair can be compiled")
		sets := rapid.Custom(func(r *rapid.T) [2]capabilitySet {
			return [2]capabilitySet{drawSet(r, n.dirs, n.files), drawSet(r, n.dirs, n.files)}
		}).Example(seed)
		outerRequest, innerRequest := n.request(t, "outer", sets[0]), n.request(t, "inner", sets[1])
		outer, e := Compile(outerRequest, Probe())
		if e != nil { // such as a workspace in what it denies
			continue
		}
		inner, e := Compile(innerRequest, Probe())
		if e != nil {
			require.NoError(t, outer.Close())
			continue
		}
		within := innerRequest
		within.Within = roundTrip(t, outer.Bounds())
		both, e := Compile(within, Probe())
		if e != nil {
			require.Equal(t, events.CodeWorkspaceRefused, e.Code, "%v", e)
			refusals++
		} else {
			second := innerRequest
			second.BestEffort = true
			stacked, e := Compile(second, flat)
			require.Nil(t, e, "%v", e)
			run := fmt.Sprint(seed)
			got := n.try(t, run+"i", both, nil)
			alone := [][]string{n.try(t, run+"o", outer, nil), n.try(t, run+"n", inner, nil), n.try(t, run+"s", outer, stacked)}
			for i, action := range n.actions(t, run) {
				tried++
				every := true
				for k, name := range []string{"the outer sandbox", "the inner sandbox", "the kernel with both"} {
					every = every && permitted(alone[k][i])
					require.False(t, permitted(got[i]) && !permitted(alone[k][i]), "%s: %s refuses with %s and the intersection does not\nouter %+v\ninner %+v",
						action, name, alone[k][i], sets[0], sets[1])
				}
				if permitted(got[i]) {
					allowed++
				} else if every {
					stricter = append(stricter, fmt.Sprintf("%s: %s (outer %+v, inner %+v)", action, got[i], sets[0], sets[1]))
				}
			}
			require.NoError(t, stacked.Close())
			require.NoError(t, both.Close())
			compared++
		}
		require.NoError(t, outer.Close())
		require.NoError(t, inner.Close())
	}
	t.Logf("%d pairs compared, %d refused, %d of %d actions permitted, %d where the intersection alone refuses", compared, refusals, allowed, tried, len(stricter))
	require.Positive(t, allowed)
	require.Less(t, allowed, tried)
	require.Empty(t, stricter, strings.Join(stricter, "\n"))
}

// roundTrip is what a record keeps of bounds.
func roundTrip(t *testing.T, b *policy.Bounds) *policy.Bounds {
	t.Helper()
	body, err := json.Marshal(b)
	require.NoError(t, err)
	var out policy.Bounds
	require.NoError(t, json.Unmarshal(body, &out))
	require.Equal(t, *b, out)
	return &out
}

// probeFlat is what can be enforced without a namespace.
func probeFlat() Support {
	s := Probe()
	s.Namespaces, s.NetworkNamespace, s.MountTrees, s.PIDMax = NamespacesNone, false, false, false
	return s
}

// What cannot be narrowed is refused: no sandbox, another workspace, and denied
// files that the spawner may have moved to another name.
func TestNestedRefused(t *testing.T) {
	requireEnforceable(t)
	w := newWorld(t)
	require.NoError(t, os.MkdirAll(w.workspace+"/secret", 0o755))
	put(t, w.workspace+"/secret/key", "KEY")
	r := w.request()
	r.Deny = []string{"secret/key"}
	outer := compile(t, r, Probe())
	r.Deny, r.Within = nil, outer.Bounds()

	inner := compile(t, r, Probe())
	require.Contains(t, treePaths(inner.paths.denied), w.workspace+"/secret/key")
	report, _ := inner.Report(nil)
	require.Equal(t, outer.Hash, report.Within)

	off := r
	off.Profile = Off
	elsewhere := r
	elsewhere.Workspace, elsewhere.Cwd = w.outside, w.outside
	added := r
	added.AddDirs = []string{w.outside}
	for _, wide := range []Request{off, elsewhere, added} {
		_, e := Compile(wide, Probe())
		require.NotNil(t, e)
		require.Equal(t, events.CodeWorkspaceRefused, e.Code)
		require.Contains(t, e.Message, "the sandbox of the spawner does not open")
	}
	require.NoError(t, os.Rename(w.workspace+"/secret", w.workspace+"/public"))
	_, e := Compile(r, Probe())
	require.NotNil(t, e)
	require.Contains(t, e.Message, "it may be elsewhere now")
}
