package kernelaudit

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func message(kind uint16, text string) []byte {
	b := make([]byte, headerSize, headerSize+len(text))
	binary.NativeEndian.PutUint16(b[4:], kind)
	return append(b, text...)
}

// Records as kernels write them.
func TestRecords(t *testing.T) {
	l := newLog()
	for _, m := range []struct {
		kind uint16
		text string
	}{
		{typeAccess, `audit(1729738800.268:30): domain=1a6fdc66f blockers=fs.refer,fs.make_reg path="/usr/bin" dev="vda2" ino=351`},
		{typeDomain, `audit(1729738800.268:30): domain=1a6fdc66f status=allocated mode=enforcing pid=286 uid=0 exe="/root/sandboxer" comm="sandboxer"`},
		{typeAccess, `audit(1729738800.269:31): domain=1a6fdc66f blockers=fs.read_file path=2F612062 dev="vda2" ino=352`},
		{typeAccess, `audit(1729738800.270:32): domain=195ba459b blockers=ptrace opid=1 ocomm="systemd"`},
		{typeDomain, `audit(1729738800.270:32): domain=195ba459b status=allocated mode=enforcing pid=300 uid=0 exe="/x" comm="x y"`},
		{typeDomain, `audit(1729738800.271:33): domain=1a6fdc66f status=deallocated denials=2`},
		{1300, `audit(1729738800.271:34): domain=1a6fdc66f blockers=fs.read_file path="/not/landlock"`},
		{typeAccess, `garbage`}, {typeAccess, `audit(1): blockers=fs.read_file`}, {typeDomain, ``},
	} {
		l.message(message(m.kind, m.text))
	}
	l.message(nil)
	require.Empty(t, l.Take(1), "the target of a refusal made no domain")
	require.Equal(t, []Denial{
		{"/usr/bin", []string{"fs.refer", "fs.make_reg"}}, {"/a b", []string{"fs.read_file"}},
	}, l.Take(286), "they outlive their domain")
	require.Empty(t, l.Take(286), "and are told once")
	require.Equal(t, []Denial{{"", []string{"ptrace"}}}, l.Take(300))
	require.Empty(t, l.domains)
	require.Empty(t, l.order)
}

// A flood keeps the latest, of bounded size.
func TestBounds(t *testing.T) {
	l := newLog()
	for i := range maxDomains + 10 {
		l.take(record{domain: fmt.Sprint(i), pid: 1})
	}
	require.Len(t, l.domains, maxDomains)
	for i := range maxDenials + 3 {
		l.take(record{domain: "d", pid: 7, denial: &Denial{Path: fmt.Sprint(i)}})
	}
	got := l.Take(7)
	require.Len(t, got, maxDenials)
	require.Equal(t, fmt.Sprint(maxDenials+2), got[maxDenials-1].Path)
}

// Where audit is off nothing is read; where it is on reading begins and ends.
func TestOpen(t *testing.T) {
	on, err := enabled()
	if err != nil {
		require.ErrorIs(t, err, ErrOff)
	}
	l, err := Open()
	if !on {
		require.ErrorIs(t, err, ErrOff)
		require.Nil(t, l)
		require.Empty(t, l.Take(1))
		require.NoError(t, l.Close())
		// The group can be joined all the same; the kernel has nothing to say.
		if l, err = subscribe(); err != nil {
			require.ErrorIs(t, err, ErrOff)
			return
		}
	}
	require.NotNil(t, l)
	require.NoError(t, l.Close())
}
