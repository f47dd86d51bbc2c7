package metrics

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// MaxSeries bounds the series of one metric.
const MaxSeries = 256

// Kind is the type of a metric.
type Kind string

// The kinds of [Registry.Func].
const (
	KindCounter Kind = "counter"
	KindGauge   Kind = "gauge"
)

const kindHistogram Kind = "histogram"

// Registry holds metrics. The zero value is empty and ready.
type Registry struct {
	mu       sync.Mutex
	families []*family
}

// family is a metric with all its series.
type family struct {
	name, help string
	kind       Kind
	labels     []string
	write      func(w *writer, f *family)
}

func (r *Registry) add(f *family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.families = append(r.families, f)
}

// Write writes every metric, in the order in which they were made.
func (r *Registry) Write(to io.Writer) error {
	r.mu.Lock()
	families := slices.Clone(r.families)
	r.mu.Unlock()
	w := &writer{to: to}
	for _, f := range families {
		w.head(f)
		f.write(w, f)
	}
	return w.flush()
}

// Func makes a metric that is read when it is written. read may emit nothing: a
// value that is not known is left out.
func (r *Registry) Func(kind Kind, name, help string, labels []string, read func(emit func(value float64, labels ...string))) {
	r.add(&family{name: name, help: help, kind: kind, labels: labels, write: func(w *writer, f *family) {
		read(func(value float64, labels ...string) { w.sample(f.name, f.labels, labels, value) })
	}})
}

// series are those of one metric by their label values.
type series[T any] struct {
	family *family
	make   func() *T

	mu sync.RWMutex
	by map[string]*T
}

const separator = "\xff" // in no UTF-8 text

// at returns the series of some label values, made if need be.
func (s *series[T]) at(values []string) *T {
	if len(values) != len(s.family.labels) {
		panic(fmt.Sprintf("metrics: %s has the labels %v and got %q", s.family.name, s.family.labels, values))
	}
	key := strings.Join(values, separator)
	s.mu.RLock()
	found := s.by[key]
	s.mu.RUnlock()
	if found != nil {
		return found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.by) >= MaxSeries && s.by[key] == nil {
		others := slices.Repeat([]string{"other"}, len(values))
		key = strings.Join(others, separator)
	}
	if s.by[key] == nil {
		s.by[key] = s.make()
	}
	return s.by[key]
}

// each calls f for every series in the order of the label values.
func (s *series[T]) each(f func(values []string, of *T)) {
	s.mu.RLock()
	all := maps.Clone(s.by)
	s.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		var values []string
		if len(s.family.labels) > 0 {
			values = strings.Split(key, separator)
		}
		f(values, all[key])
	}
}

// Counter only grows.
type Counter struct{ series series[atomic.Int64] }

// Counter makes a counter. One without labels is there from the start, at 0.
func (r *Registry) Counter(name, help string, labels ...string) *Counter {
	f := &family{name: name, help: help, kind: KindCounter, labels: labels}
	c := &Counter{series[atomic.Int64]{family: f, make: func() *atomic.Int64 { return new(atomic.Int64) }, by: make(map[string]*atomic.Int64)}}
	f.write = func(w *writer, f *family) {
		c.series.each(func(values []string, n *atomic.Int64) { w.sample(f.name, f.labels, values, float64(n.Load())) })
	}
	if len(labels) == 0 {
		c.series.at(nil)
	}
	r.add(f)
	return c
}

// Add adds n to the series of the label values.
func (c *Counter) Add(n int64, labels ...string) { c.series.at(labels).Add(n) }

// Inc adds 1 to the series of the label values.
func (c *Counter) Inc(labels ...string) { c.Add(1, labels...) }

// Histogram counts observations by size.
type Histogram struct {
	bounds []float64
	series series[cells]
}

// cells are those of one series. The count of an observation is its last word:
// what is read is never more than what was observed.
type cells struct {
	buckets []atomic.Int64 // one for each bound and one beyond the last
	sum     atomic.Uint64  // the bits of a float64
}

// Histogram makes a histogram with the upper bounds of its buckets, in
// increasing order. One without labels is there from the start.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) *Histogram {
	f := &family{name: name, help: help, kind: kindHistogram, labels: labels}
	h := &Histogram{bounds: bounds, series: series[cells]{family: f, by: make(map[string]*cells), make: func() *cells {
		return &cells{buckets: make([]atomic.Int64, len(bounds)+1)}
	}}}
	f.write = func(w *writer, f *family) {
		h.series.each(func(values []string, c *cells) { h.write(w, f, values, c) })
	}
	if len(labels) == 0 {
		h.series.at(nil)
	}
	r.add(f)
	return h
}

// Observe counts one observation in the series of the label values.
func (h *Histogram) Observe(v float64, labels ...string) {
	c := h.series.at(labels)
	for {
		old := c.sum.Load()
		if c.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			break
		}
	}
	i, _ := slices.BinarySearch(h.bounds, v)
	c.buckets[i].Add(1)
}

func (h *Histogram) write(w *writer, f *family, values []string, c *cells) {
	labels, total := append(slices.Clone(f.labels), "le"), int64(0)
	for i := range c.buckets {
		total += c.buckets[i].Load()
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
		}
		w.sample(f.name+"_bucket", labels, append(slices.Clone(values), bound), float64(total))
	}
	w.sample(f.name+"_sum", f.labels, values, math.Float64frombits(c.sum.Load()))
	w.sample(f.name+"_count", f.labels, values, float64(total))
}
