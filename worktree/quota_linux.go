package worktree

import (
	"os"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/diskspace"
)

// Limits bound what the trees of one root may take together; 0 is no bound.
type Limits struct {
	// MaxCount is how many trees there may be, kept ones included.
	MaxCount int
	// MaxTotal is how many bytes they may take, as they were when they were made or
	// saved last.
	MaxTotal int64
}

// spare is what a tree takes beside its files, for each of them: a block that is
// partly used, its place in two indexes.
const spare = 4 << 10

// admit refuses a tree for which there is no room: by the limits, or on the disk.
func (r Root) admit(repo *repository, l Limits) *events.Error {
	var need int64
	for i := range repo.index.entries {
		need += int64(repo.index.entries[i].stat.size) + spare
	}
	if l.MaxCount > 0 || l.MaxTotal > 0 {
		count, total, err := r.Usage()
		switch {
		case err != nil:
			return err
		case l.MaxCount > 0 && count >= l.MaxCount:
			return full("there are %d working trees, the limit is %d (worktree.max_count)", count, l.MaxCount)
		case l.MaxTotal > 0 && total+need > l.MaxTotal:
			return full("the working trees take %d bytes and this one would take %d; the limit is %d (worktree.max_total)", total, need, l.MaxTotal)
		}
	}
	dir, err := os.Open(r.path)
	if err != nil {
		return problem(repo.id, "look for space", err)
	}
	defer dir.Close()
	free, size, err := diskspace.Free(int(dir.Fd()))
	if err != nil {
		return problem(repo.id, "look for space", err)
	}
	if reserve := diskspace.Output(size); uint64(need)+reserve > free {
		return events.Errorf(events.CodeStorageFull, events.LayerWorkspace,
			"worktree %s: %s has %d bytes free, the tree needs %d and %d stay free", repo.id, r.path, free, need, reserve).
			WithRemedy("hayward worktree gc frees space; [worktree] dir names another place")
	}
	return nil
}

func full(format string, args ...any) *events.Error {
	return events.Errorf(events.CodeLimit, events.LayerGate, "worktree: "+format, args...).
		WithRemedy("hayward worktree ls shows them; hayward worktree gc removes those that hold nothing")
}

// Usage counts the trees there are and adds up what they take. Trees without a
// readable record count, with no bytes.
func (r Root) Usage() (count int, bytes int64, err *events.Error) {
	ids, err := r.List()
	if err != nil {
		return 0, 0, err
	}
	for _, id := range ids {
		if rec, err := r.Read(id); err == nil {
			bytes += rec.Bytes + int64(rec.Files)*spare
		}
	}
	return len(ids), bytes, nil
}
