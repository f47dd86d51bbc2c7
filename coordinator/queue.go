package coordinator

import "sync"

// queue is a first in, first out queue of many writers and one reader. It never
// blocks a writer: past its limit it refuses, and without one its length is
// bounded by what may be written.
type queue[T any] struct {
	// wake holds one token while there may be something to read.
	wake chan struct{}

	mu     sync.Mutex
	items  []T
	head   int
	limit  int // 0: none
	closed bool
}

func newQueue[T any](limit int) *queue[T] {
	return &queue[T]{wake: make(chan struct{}, 1), limit: limit}
}

// push adds v. ok is false when the queue is full or closed.
func (q *queue[T]) push(v T) (ok, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, true
	}
	if q.limit > 0 && len(q.items)-q.head >= q.limit {
		return false, false
	}
	q.items = append(q.items, v)
	q.signal()
	return true, false
}

// pop removes the first item.
func (q *queue[T]) pop() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.items) {
		return v, false
	}
	var zero T
	v, q.items[q.head] = q.items[q.head], zero
	q.head++
	switch {
	case q.head == len(q.items):
		q.items, q.head = q.items[:0], 0
	case q.head > 1024 && q.head > len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return v, true
}

// depth is how many items wait.
func (q *queue[T]) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) - q.head
}

// close refuses further items; those that are there can still be read. It wakes
// the reader.
func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// drained reports whether the queue is closed and empty.
func (q *queue[T]) drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && q.head == len(q.items)
}

func (q *queue[T]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
