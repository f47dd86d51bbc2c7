package worktree

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

const (
	benchDirs  = 2_500
	benchPairs = 5
)

// benchFiles is how many files the repository has; HAYWARD_BENCH_FILES replaces it.
var benchFiles = func() int {
	if n, err := strconv.Atoi(os.Getenv("HAYWARD_BENCH_FILES")); err == nil && n >= benchDirs {
		return n
	}
	return 50_000
}()

// benchRepository is a repository of 50 000 files of 1 to 6 KiB, committed, its
// index refreshed, with some uncommitted state.
func benchRepository(b *testing.B) *user {
	u := newUser(b)
	random := rand.New(rand.NewSource(1))
	for i := range benchFiles {
		body := make([]byte, 512+random.Intn(2500))
		random.Read(body)
		dir := i % benchDirs
		u.write(fmt.Sprintf("d%02d/e%02d/f%05d.txt", dir/50, dir%50, i), fmt.Sprintf("%x\n", body))
	}
	u.commit("one")
	time.Sleep(time.Second) // a repository that was not made just now
	u.git("status")
	for i := range 20 {
		u.write(fmt.Sprintf("d%02d/e%02d/f%05d.txt", i/50, i%50, i), "changed\n")
		u.write(fmt.Sprintf("d%02d/new%d", i, i), "new\n")
	}
	return u
}

// medianRatio is the median of ours over theirs in alternating pairs.
func medianRatio(b *testing.B, ours, theirs func(i int) time.Duration) (ratio float64, our, their time.Duration) {
	var ratios []float64
	for i := range benchPairs {
		var o, t time.Duration
		if i%2 == 0 {
			o, t = ours(i), theirs(i)
		} else {
			t, o = theirs(i), ours(i)
		}
		ratios = append(ratios, float64(o)/float64(t))
		our, their = our+o, their+t
	}
	sort.Float64s(ratios)
	b.Logf("ratios %.2f", ratios)
	return ratios[len(ratios)/2], our / benchPairs, their / benchPairs
}

func timed(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// BenchmarkCreate compares making a tree with a plain git worktree add.
func BenchmarkCreate(b *testing.B) {
	u, root, plain := benchRepository(b), newRoot(b), b.TempDir()
	for b.Loop() {
		ratio, our, their := medianRatio(b, func(i int) time.Duration {
			id := events.NewID()
			var tree *Tree
			d := timed(func() {
				var err *events.Error
				tree, err = root.Create(b.Context(), Request{ID: id, Dir: u.dir, Home: "/nonexistent"})
				requireNo(b, err)
			})
			tree.Close()
			require.NoError(b, removeTree(root.path, id))
			return d
		}, func(i int) time.Duration {
			dir := filepath.Join(plain, fmt.Sprint(i))
			d := timed(func() { u.git("worktree", "add", "-q", "--detach", dir) })
			require.NoError(b, os.RemoveAll(dir))
			u.git("worktree", "prune")
			return d
		})
		b.ReportMetric(ratio, "ratio")
		b.ReportMetric(our.Seconds(), "s/create")
		b.ReportMetric(their.Seconds(), "s/worktree-add")
	}
}

// BenchmarkSnapshot compares saving a tree with git add -A and git write-tree on a
// throw-away index that has the stat data of the tree.
func BenchmarkSnapshot(b *testing.B) {
	u, root := benchRepository(b), newRoot(b)
	tree := create(b, root, u.dir)
	in := inside(b, tree)
	// Each measurement has objects of its own to write.
	measured := 0
	change := func() {
		measured++
		for i := range 100 {
			in.write(fmt.Sprintf("d%02d/e%02d/f%05d.txt", i/50, i%50, i), fmt.Sprintln("inside", i, measured))
			in.write(fmt.Sprintf("d%02d/inside%d", i%50, i), fmt.Sprintln("new", i, measured))
		}
	}
	index := filepath.Join(b.TempDir(), "index")
	git := Git{Dir: root.cleanGit(tree.ID), WorkTree: tree.Path, Index: index, Objects: filepath.Join(u.dir, ".git/objects")}
	for b.Loop() {
		ratio, our, their := medianRatio(b, func(int) time.Duration {
			change()
			return timed(func() {
				_, err := root.save(b.Context(), tree.Record)
				require.NoError(b, err)
			})
		}, func(int) time.Duration {
			body, err := os.ReadFile(root.baseIndex(tree.ID))
			require.NoError(b, err)
			require.NoError(b, os.WriteFile(index, body, 0o600))
			change()
			return timed(func() {
				requireNo(b, git.Run(b.Context(), Call{}, "add", "-A"))
				requireNo(b, git.Run(b.Context(), Call{}, "write-tree"))
			})
		})
		b.ReportMetric(ratio, "ratio")
		b.ReportMetric(our.Seconds(), "s/snapshot")
		b.ReportMetric(their.Seconds(), "s/add-and-write-tree")
	}
}
