package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/filetx"
)

// blobsDeadline is how long reading the content of many files may take.
const blobsDeadline = 10 * time.Minute

// blobs are files of a directory of our own, each named by its object id.
type blobs struct {
	git Git
	dir string
	// tree is the same directory, to know object ids.
	tree *filetx.Tree
}

// openBlobs makes an empty directory for blobs.
func openBlobs(g Git, dir, format string) (*blobs, error) {
	if err := os.RemoveAll(dir); err != nil { // what a crash left
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	t, err := filetx.Open(dir, format)
	if err != nil {
		return nil, err
	}
	g.Timeout = blobsDeadline
	return &blobs{g, dir, t}, nil
}

// close removes them.
func (b *blobs) close() error { return errors.Join(b.tree.Close(), os.RemoveAll(b.dir)) }

func (b *blobs) file(oid string) string { return filepath.Join(b.dir, oid) }

func (b *blobs) has(oid string) bool {
	_, err := os.Lstat(b.file(oid))
	return err == nil
}

// fetch copies blobs from the repository, all by one run of git.
func (b *blobs) fetch(ctx context.Context, oids []string) *events.Error {
	var want strings.Builder
	asked := make(map[string]bool)
	for _, oid := range oids {
		if !asked[oid] && !b.has(oid) {
			asked[oid] = true
			want.WriteString(oid + "\n")
		}
	}
	if len(asked) == 0 {
		return nil
	}
	r := &blobReader{to: b, left: -1}
	err := b.git.Run(ctx, Call{Stdin: strings.NewReader(want.String()), Stdout: r}, "cat-file", "--batch")
	if r.err == nil && err == nil && r.count != len(asked) {
		r.err = errors.New("git cat-file ended early")
	}
	if r.file != nil {
		r.err = errors.Join(r.err, r.file.Close())
	}
	if r.err != nil {
		return events.Errorf(events.CodeGitFailed, events.LayerWorkspace, "worktree %s: read the content of files: %w", b.git.ID, r.err)
	}
	return err
}

// keep copies the bytes of a user's file, which must still be those of oid.
func (b *blobs) keep(t *filetx.Tree, path, oid string) error {
	if b.has(oid) {
		return nil
	}
	f, err := os.CreateTemp(b.dir, "kept-")
	if err != nil {
		return err
	}
	got, err := t.Copy(path, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if got != oid {
		return filetx.ErrChanged
	}
	return os.Rename(f.Name(), b.file(oid))
}

// adopt names a file of the directory by its object id, which it returns.
func (b *blobs) adopt(file string) (string, error) {
	s, err := b.tree.State(filepath.Base(file))
	if err != nil {
		return "", err
	}
	return s.OID, os.Rename(file, b.file(s.OID))
}

// blobReader takes apart what git cat-file --batch writes: for each object a line
// "OID blob SIZE", SIZE bytes and a line end.
type blobReader struct {
	to    *blobs
	head  []byte
	file  *os.File
	left  int64 // bytes of content to come; -1 in a head, 0 before the line end
	count int
	err   error
}

// Write implements [io.Writer].
func (r *blobReader) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 && r.err == nil {
		switch {
		case r.left < 0:
			i := bytes.IndexByte(p, '\n')
			if i < 0 {
				r.head = append(r.head, p...)
				p = nil
				break
			}
			r.head = append(r.head, p[:i]...)
			p = p[i+1:]
			r.err = r.begin()
		case r.left == 0:
			p = p[1:]
			r.err = r.end()
		default:
			n := min(int64(len(p)), r.left)
			_, r.err = r.file.Write(p[:n])
			p, r.left = p[n:], r.left-n
		}
	}
	return total - len(p), r.err
}

func (r *blobReader) begin() error {
	f := strings.Fields(string(r.head))
	r.head = r.head[:0]
	if len(f) != 3 || f[1] != "blob" {
		return fmt.Errorf("the repository lacks an object: %q", strings.Join(f, " "))
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return err
	}
	r.left = size
	r.file, err = os.OpenFile(r.to.file(f[0]), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("object %s came twice", f[0])
	}
	return err
}

func (r *blobReader) end() error {
	r.left = -1
	r.count++
	err := r.file.Close()
	r.file = nil
	return err
}
