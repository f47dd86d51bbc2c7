package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hayward-dev/hayward/sandbox/internal/layout"
)

// mountOps are the operations of a plan in their order: what is to stay writable
// is held and put back over a read-only tree; then the child's own temporary
// directory and what is kept in it; then what is closed, denied and hidden in all
// of that. Inputs and what is kept are held first: they may lie in what is hidden
// or covered later.
func mountOps(r *roots, sockets []string, pidMax bool) ([]layout.Op, error) {
	b := &opBuilder{ops: []layout.Op{{Kind: layout.OpPrivate, Target: "/"}}}
	inputs, kept := b.holdAll(r, r.inputs), b.holdAll(r, r.kept)
	if !slices.Contains(r.outermost, "/") {
		if err := b.open(r); err != nil {
			return nil, err
		}
	}
	if r.tempRoot != "" && !r.caps.PrivateTemp {
		b.add(layout.Op{Kind: layout.OpOnly, Target: r.tempRoot, Source: r.temp})
	}
	for _, k := range kept {
		b.add(layout.Op{Kind: layout.OpPlace, Target: k.target, Value: k.number})
	}
	for _, d := range r.seen(r.pins) {
		b.add(layout.Op{Kind: layout.OpPin, Target: d})
	}
	for _, d := range r.seen(r.closed) {
		b.add(layout.Op{Kind: layout.OpClose, Target: d})
	}
	for _, d := range r.denied {
		if !r.visible(d.path) {
			continue
		}
		kind := layout.OpMaskFile
		if d.dir {
			kind = layout.OpMaskDir
		}
		b.add(layout.Op{Kind: kind, Target: d.path})
	}
	for _, s := range r.seen(sockets) {
		b.add(layout.Op{Kind: layout.OpMaskSocket, Target: s})
	}
	for _, i := range inputs {
		b.add(layout.Op{Kind: layout.OpBindFile, Target: i.target, Value: i.number})
	}
	for _, h := range r.seen(r.hidden) {
		if r.own != "" && within(r.own, h) {
			b.add(layout.Op{Kind: layout.OpOnly, Target: h, Source: r.own})
			continue
		}
		b.add(layout.Op{Kind: layout.OpMaskDir, Target: h})
	}
	b.add(layout.Op{Kind: layout.OpProc, Target: "/proc"})
	if pidMax {
		b.add(layout.Op{Kind: layout.OpPIDMax, Value: reservedPIDs + ProcessLimit})
	}
	return b.ops, nil
}

type opBuilder struct{ ops []layout.Op }

func (b *opBuilder) add(o layout.Op) { b.ops = append(b.ops, o) }

// held is a tree that was held and has to be put somewhere.
type held struct {
	number uint32
	target string
}

func (b *opBuilder) hold(source, target string) held {
	b.add(layout.Op{Kind: layout.OpHold, Target: source})
	return held{uint32(len(b.ops) - 1), target}
}

// holdAll holds what is shown below the child's temporary directory.
func (b *opBuilder) holdAll(r *roots, binds []Bind) []held {
	var all []held
	for _, i := range binds {
		all = append(all, b.hold(i.Source, r.inside()+strings.TrimPrefix(i.Target, r.temp)))
	}
	return all
}

// open makes everything read-only but the writable roots. With a private
// temporary directory that one lies over the host's, and what is opened below
// those lies over it.
func (b *opBuilder) open(r *roots) error {
	var places []held
	if r.caps.PrivateTemp {
		for _, d := range r.shared {
			places = append(places, b.hold(r.temp, d))
		}
	}
	for _, w := range r.outermost {
		if !r.caps.PrivateTemp || w != r.temp {
			places = append(places, b.hold(w, w))
		}
	}
	b.add(layout.Op{Kind: layout.OpReadOnly, Target: "/"})
	if r.caps.PrivateTemp {
		// Held from the tree that is read-only by now, so the copies are as well.
		for _, t := range r.readable {
			if r.inSharedTemp(t.path) && !r.writes(t.path) {
				places = append(places, b.hold(t.path, t.path))
			}
		}
	}
	for _, p := range places {
		if r.caps.PrivateTemp && r.inSharedTemp(p.target) && !slices.Contains(r.shared, p.target) {
			if err := r.makePlace(p.target); err != nil {
				return err
			}
		}
		b.add(layout.Op{Kind: layout.OpPlace, Target: p.target, Value: p.number})
	}
	return nil
}

// makePlace makes the mount point, in the child's own temporary directory, of
// something that lies in a temporary directory of the host.
func (r *roots) makePlace(path string) error {
	st, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("find %s: %w", path, err)
	}
	for _, d := range r.shared {
		rest, ok := strings.CutPrefix(path, d+"/")
		if !ok {
			continue
		}
		place := filepath.Join(r.temp, rest)
		if st.IsDir() {
			err = os.MkdirAll(place, 0o700)
		} else if err = os.MkdirAll(filepath.Dir(place), 0o700); err == nil {
			err = os.WriteFile(place, nil, 0o600)
		}
		if err != nil {
			return fmt.Errorf("make a place for %s: %w", path, err)
		}
	}
	return nil
}
