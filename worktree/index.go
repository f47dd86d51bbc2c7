package worktree

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sort"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// index is a git index file: what git believes of each file of a working tree.
// Only here is it read and written without git: a copy of a tree whose files are
// not hashed again needs an index with the copy's stat data.
type index struct {
	format  string // "sha1" or "sha256"
	modTime time.Time
	entries []entry
	// cacheTree is the extension TREE, which stays true as long as no object id,
	// mode or path changes.
	cacheTree []byte
	// split and sparse name extensions that leave entries out.
	split, sparse bool
}

// entry is one file of an index.
type entry struct {
	stat  statData
	mode  uint32
	oid   []byte
	flags uint16
	// extended are the flags of version 3.
	extended uint16
	path     string
}

// statData is what git remembers of a file to see whether it changed.
type statData struct {
	ctimeSec, ctimeNsec, mtimeSec, mtimeNsec uint32
	dev, ino, uid, gid, size                 uint32
}

const (
	flagAssumeValid  = 0x8000
	flagExtended     = 0x4000
	flagStage        = 0x3000
	flagName         = 0x0fff
	extIntentToAdd   = 0x2000
	extSkipWorktree  = 0x4000
	modeSymlink      = 0o120000
	modeGitlink      = 0o160000
	modeRegular      = 0o100000
	maxIndex         = 1 << 30
	indexHeaderSize  = 12
	entryFixedSize   = 40
	extensionHeader  = 8
	cacheTreeName    = "TREE"
	splitIndexName   = "link"
	sparseIndexName  = "sdir"
	indexSignature   = "DIRC"
	newestIndex      = 4
	oldestIndex      = 2
	indexWithoutExts = 2
	indexWithExts    = 3
)

func (e *entry) stage() int        { return int(e.flags&flagStage) >> 12 }
func (e *entry) intentToAdd() bool { return e.extended&extIntentToAdd != 0 }

func hashOf(format string) hash.Hash {
	if format == "sha256" {
		return sha256.New()
	}
	return sha1.New()
}

// readIndex reads an index file. None is an empty index.
func readIndex(path, format string) (*index, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return &index{format: format}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxIndex {
		return nil, fmt.Errorf("%s is no index", path)
	}
	body := make([]byte, st.Size())
	if _, err := io.ReadFull(f, body); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	x, err := parseIndex(body, format)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	x.modTime = st.ModTime()
	return x, nil
}

var errIndex = errors.New("the index is damaged")

// parseIndex reads versions 2, 3 and 4.
func parseIndex(b []byte, format string) (*index, error) {
	sum := hashOf(format)
	size := sum.Size()
	if len(b) < indexHeaderSize+size || string(b[:4]) != indexSignature {
		return nil, errIndex
	}
	body, want := b[:len(b)-size], b[len(b)-size:]
	sum.Write(body)
	// All zero is an index written without a checksum.
	if got := sum.Sum(nil); !bytes.Equal(got, want) && !bytes.Equal(want, make([]byte, size)) {
		return nil, errIndex
	}
	version := binary.BigEndian.Uint32(body[4:])
	count := int(binary.BigEndian.Uint32(body[8:]))
	if version < oldestIndex || version > newestIndex {
		return nil, fmt.Errorf("the index has version %d", version)
	}
	if count > len(body)/(entryFixedSize+size) {
		return nil, errIndex
	}
	x := &index{format: format, entries: make([]entry, 0, count)}
	rest, previous, nameless := body[indexHeaderSize:], "", false
	for range count {
		e, n, err := parseEntry(rest, size, version, previous)
		if err != nil {
			return nil, err
		}
		nameless = nameless || e.path == ""
		x.entries = append(x.entries, e)
		rest, previous = rest[n:], e.path
	}
	for len(rest) > 0 {
		if len(rest) < extensionHeader {
			return nil, errIndex
		}
		name, n := string(rest[:4]), int(binary.BigEndian.Uint32(rest[4:]))
		if n > len(rest)-extensionHeader {
			return nil, errIndex
		}
		switch name {
		case cacheTreeName:
			x.cacheTree = rest[extensionHeader : extensionHeader+n]
		case splitIndexName:
			x.split = true
		case sparseIndexName:
			x.sparse = true
		}
		rest = rest[extensionHeader+n:]
	}
	if nameless && !x.split { // those of a split index replace one of the shared index
		return nil, errIndex
	}
	return x, nil
}

// parseEntry reads one entry and returns how long it is.
func parseEntry(b []byte, oidSize int, version uint32, previous string) (entry, int, error) {
	fixed := entryFixedSize + oidSize + 2
	if len(b) < fixed+2 {
		return entry{}, 0, errIndex
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	e := entry{
		stat: statData{
			ctimeSec: word(0), ctimeNsec: word(1), mtimeSec: word(2), mtimeNsec: word(3),
			dev: word(4), ino: word(5), uid: word(7), gid: word(8), size: word(9),
		},
		mode:  word(6),
		oid:   b[entryFixedSize : entryFixedSize+oidSize],
		flags: binary.BigEndian.Uint16(b[entryFixedSize+oidSize:]),
	}
	if e.flags&flagExtended != 0 {
		e.extended = binary.BigEndian.Uint16(b[fixed:])
		fixed += 2
	}
	name := b[fixed:]
	prefix := ""
	if version == newestIndex {
		strip, n := offsetVarint(name)
		if n == 0 || strip > len(previous) {
			return entry{}, 0, errIndex
		}
		prefix, name, fixed = previous[:len(previous)-strip], name[n:], fixed+n
	}
	end := bytes.IndexByte(name, 0)
	if end < 0 {
		return entry{}, 0, errIndex
	}
	e.path = prefix + string(name[:end])
	n := fixed + end + 1
	if version != newestIndex {
		n = (fixed + end + 8) &^ 7
	}
	if n > len(b) {
		return entry{}, 0, errIndex
	}
	return e, n, nil
}

// offsetVarint reads a number as in the offsets of a pack; 0 bytes is an error.
func offsetVarint(b []byte) (value, n int) {
	for i, c := range b {
		if i > 4 {
			break
		}
		if i > 0 {
			value++
		}
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}

// encode writes the index in version 2, or 3 where an entry needs it.
func (x *index) encode() []byte {
	version, size := uint32(indexWithoutExts), len(x.cacheTree)+64
	for i := range x.entries {
		if x.entries[i].extended != 0 {
			version = indexWithExts
		}
		size += entryFixedSize + len(x.entries[i].oid) + len(x.entries[i].path) + 12
	}
	b := make([]byte, 0, size)
	word := binary.BigEndian.AppendUint32
	b = append(b, indexSignature...)
	b = word(word(b, version), uint32(len(x.entries)))
	for i := range x.entries {
		e := &x.entries[i]
		start := len(b)
		s := e.stat
		for _, v := range [...]uint32{s.ctimeSec, s.ctimeNsec, s.mtimeSec, s.mtimeNsec, s.dev, s.ino, e.mode, s.uid, s.gid, s.size} {
			b = word(b, v)
		}
		b = append(b, e.oid...)
		flags := e.flags&^(flagExtended|flagName) | uint16(min(len(e.path), flagName))
		if e.extended != 0 {
			flags |= flagExtended
		}
		b = binary.BigEndian.AppendUint16(b, flags)
		if e.extended != 0 {
			b = binary.BigEndian.AppendUint16(b, e.extended)
		}
		b = append(b, e.path...)
		b = append(b, make([]byte, 8-(len(b)-start)%8)...)
	}
	if x.cacheTree != nil {
		b = append(b, cacheTreeName...)
		b = append(word(b, uint32(len(x.cacheTree))), x.cacheTree...)
	}
	sum := hashOf(x.format)
	sum.Write(b)
	return sum.Sum(b)
}

// find returns the entry of a path, nil if there is none.
func (x *index) find(path string) *entry {
	i := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].path >= path })
	if i < len(x.entries) && x.entries[i].path == path {
		return &x.entries[i]
	}
	return nil
}

// statOf is what git remembers of a file with that status.
func statOf(st *unix.Stat_t) statData {
	return statData{
		ctimeSec: uint32(st.Ctim.Sec), ctimeNsec: uint32(st.Ctim.Nsec),
		mtimeSec: uint32(st.Mtim.Sec), mtimeNsec: uint32(st.Mtim.Nsec),
		dev: uint32(st.Dev), ino: uint32(st.Ino), uid: st.Uid, gid: st.Gid, size: uint32(st.Size),
	}
}

// gitMode is the mode that git keeps of a file, 0 for what it keeps none of.
func gitMode(mode uint32) uint32 {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		if mode&0o100 != 0 {
			return modeRegular | 0o755
		}
		return modeRegular | 0o644
	case syscall.S_IFLNK:
		return modeSymlink
	}
	return 0
}

// tick is the longest time in which two changes of a file may get one time stamp.
const tick = 20 * time.Millisecond

// unchanged reports whether a file is certainly the one that the entry describes.
// It is stricter than git: every value must match to the nanosecond, and a file
// touched about when the index was written is not certain.
func (e *entry) unchanged(st *unix.Stat_t, written time.Time) bool {
	now := statOf(st)
	now.dev = e.stat.dev // it may change when a file system is mounted again
	if now != e.stat || gitMode(st.Mode) != e.mode || int64(uint32(st.Size)) != st.Size {
		return false
	}
	margin := tick
	if e.stat.mtimeNsec == 0 {
		margin = time.Second // a file system that keeps no more
	}
	touched := time.Unix(st.Mtim.Unix())
	return touched.Before(written.Add(-margin))
}

// indexSum is the checksum at the end of an index file.
func indexSum(body []byte, format string) string {
	if size := hashOf(format).Size(); len(body) > size {
		return hex.EncodeToString(body[len(body)-size:])
	}
	return ""
}
