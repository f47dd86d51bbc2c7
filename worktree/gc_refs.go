package worktree

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/events"
)

// journal is where the apply of a tree keeps how far it is.
func (r Root) journal(id string) string { return filepath.Join(r.Dir(id), journalFile) }

// collectRefs removes refs of subagents that have no directory below the root.
// They may be of another state directory: only their age speaks for them.
func (r Root) collectRefs(ctx context.Context, commonDir string, o GCOptions) ([]GCItem, *events.Error) {
	lock, err := LockRepository(ctx, commonDir, "gc")
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	out, err := userGit(commonDir, "").Output(ctx, "for-each-ref", "--format=%(refname) %(committerdate:unix)", baseRefs, subagentRefs)
	if err != nil {
		return nil, err
	}
	youngest := make(map[string]int64)
	for line := range strings.Lines(string(out)) {
		name, date, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest := strings.TrimPrefix(strings.TrimPrefix(name, baseRefs), subagentRefs)
		id, last, _ := strings.Cut(rest, "/")
		at, dateErr := strconv.ParseInt(date, 10, 64)
		// Only the commits that were made here tell when.
		if last == RefHead || last == refHeld || strings.HasPrefix(last, RefHeads) || !events.ValidID(id) {
			continue
		}
		if dateErr != nil {
			at = time.Now().Unix() // what is no commit is not old
		}
		youngest[id] = max(youngest[id], at)
	}
	var items []GCItem
	for id, at := range youngest {
		if !gone(r.Dir(id)) {
			continue
		}
		item := GCItem{ID: id, Class: GCRefs, Repository: commonDir, Why: "there is no record of it here, and it is old enough"}
		if time.Since(time.Unix(at, 0)) < o.OlderThan {
			item.Why = "there is no record of it here, but it is too young"
			items = append(items, item)
			continue
		}
		item.Refs = true
		if !o.DryRun {
			if err := DeleteRefs(ctx, commonDir, id); err != nil {
				item.Refs, item.Error = false, err
			}
		}
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b GCItem) int { return strings.Compare(a.ID, b.ID) })
	return items, nil
}

// unsavedButIgnored is unsaved without the files that git ignores by the tree's
// own patterns.
func (r Root) unsavedButIgnored(ctx context.Context, rec Record) ([]string, *events.Error) {
	return r.unsavedExcept(ctx, rec, func(files []string) ([]string, *events.Error) {
		ignored, err := ignoredOf(ctx, cleanGit(r, rec, ""), files)
		if err != nil {
			return nil, workFailed(rec.ID, "tell what git ignores", err)
		}
		return slices.DeleteFunc(files, func(f string) bool { return ignored[f] }), nil
	})
}
