package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

// forgotten are the ids that were reported as removed, and as not.
func (r *reports) forgotten() (gone, kept []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.list {
		if f, ok := m.(Forgotten); ok && f.Err == nil {
			gone = append(gone, f.ID)
		} else if ok {
			kept = append(kept, f.ID)
		}
	}
	return gone, kept
}

func TestPersisterRemoves(t *testing.T) {
	withPersister(t, func(t *testing.T, p *persister, j *memoryJournal, r *reports, stop func()) {
		all := ids(3 * maxRemoving)
		for _, id := range all {
			m := recordOf(id, 1)
			m.Record.State = events.StateCompleted
			p.in.push(m)
		}
		synctest.Wait()
		full := events.Errorf(events.CodeStorageFailed, events.LayerCoordinator, "not now")
		j.mu.Lock()
		j.noDelete = full
		j.mu.Unlock()
		p.in.push(Forget{ID: all[0]})
		synctest.Wait()
		gone, kept := r.forgotten()
		require.Empty(t, gone)
		require.Equal(t, all[:1], kept, "it is reported and not tried again")
		require.NotEmpty(t, j.record(all[0]).ID)

		j.mu.Lock()
		j.noDelete = nil
		j.mu.Unlock()
		gate := events.Gate{Session: "s", Prompt: "p", At: epochStart}
		for _, id := range all {
			p.in.push(Forget{ID: id, Gate: &gate})
		}
		p.in.push(recordOf(idOf("new"), 1))
		stop()
		gone, _ = r.forgotten()
		require.ElementsMatch(t, all, gone)
		require.Len(t, j.records, 1)
		require.Equal(t, gate, j.gates[promptKey{"s", "p"}], "written before the removal")
		require.Equal(t, []uint64{1}, r.durable(idOf("new")))
	})
}

// A whole coordinator: what was read is removed by itself, and by request.
func TestCoordinatorRemoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Retention: Retention{PerSession: 2, Age: time.Hour}}).run()
		for _, name := range []string{"a", "b", "c"} {
			a := <-b.submit(command(name, "ok"))
			require.Nil(t, a.Error)
			require.Nil(t, b.c.Ack(a.AckToken))
			synctest.Wait()
		}
		require.Empty(t, b.journal.record(idOf("a")).ID)
		reply, err := b.c.Remove(t.Context(), events.RemoveRequest{IDs: []string{idOf("a"), idOf("b")}})
		require.Nil(t, err)
		require.Equal(t, events.RemoveNotFound, reply.Results[0].Outcome)
		require.Equal(t, events.RemoveRemoved, reply.Results[1].Outcome)
		_, err = b.c.Remove(t.Context(), events.RemoveRequest{})
		require.Equal(t, events.CodeInvalidRequest, err.Code)
		time.Sleep(2 * time.Hour) // fake time
		synctest.Wait()
		require.Empty(t, b.journal.records)
		pruned, err := b.c.Prune(t.Context(), events.PruneRequest{Keep: new(int)})
		require.Nil(t, err)
		require.Equal(t, events.RemoveReply{Results: []events.RemoveResult{}}, pruned)
		b.stop()
	})
}
