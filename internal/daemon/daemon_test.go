package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/coordinator"
	"github.com/hayward-dev/hayward/events"
)

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lockState(t.Context(), path)
	require.NoError(t, err)
	_, err = lockState(t.Context(), path)
	require.True(t, events.HasCode(err, events.CodeStoreConflict), err)
	require.ErrorContains(t, err, strconv.Itoa(os.Getpid()), "the holder is named")
	require.NoError(t, first.Close())
	again, err := lockState(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, again.Close())

	_, err = lockState(t.Context(), filepath.Join(path, "below-a-file"))
	require.True(t, events.HasCode(err, events.CodeStorageFailed), err)
}

func TestPrivateDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, privateDir(dir))
	st, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, privateDir(dir), "to be read is no harm")
	require.NoError(t, os.Chmod(dir, 0o777))
	require.True(t, events.HasCode(privateDir(dir), events.CodeForbidden))
}

func TestTokenFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	first, err := writeToken(path)
	require.NoError(t, err)
	require.Len(t, first, 64)
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	second, err := writeToken(path)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

func TestCheckRead(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	tail := func(i int) *int { return &i }
	for name, c := range map[string]struct {
		req  events.FileRequest
		want time.Duration
		bad  bool
	}{
		"default":         {events.FileRequest{}, events.DefaultFollowMS * time.Millisecond, false},
		"given":           {events.FileRequest{TimeoutMS: n(5)}, 5 * time.Millisecond, false},
		"too long":        {events.FileRequest{TimeoutMS: n(events.MaxFollowMS + 1)}, 0, true},
		"negative":        {events.FileRequest{TimeoutMS: n(-1)}, 0, true},
		"negative offset": {events.FileRequest{Offset: -1}, 0, true},
		"too much":        {events.FileRequest{Max: events.MaxChunk + 1}, 0, true},
		"tail and offset": {events.FileRequest{Offset: 1, Tail: tail(1)}, 0, true},
		"negative tail":   {events.FileRequest{Tail: tail(-1)}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := checkRead(c.req)
			require.Equal(t, c.bad, err != nil)
			require.Equal(t, c.want, got)
		})
	}
}

func TestOneLine(t *testing.T) {
	require.Equal(t, "a b  c", oneLine("a\nb\r\nc"))
	require.LessOrEqual(t, len(oneLine(strings.Repeat("é", 2000))), 1024)
}

func TestHideValues(t *testing.T) {
	env := map[string]string{"TOKEN": "s3cr3t", "EMPTY": ""}
	hideValues(env)
	require.Equal(t, map[string]string{"TOKEN": "(6 bytes)", "EMPTY": "(0 bytes)"}, env)
}

// A request must not make us write where its sender may not.
func TestForeignReplySubjects(t *testing.T) {
	r := replier{}
	for subject, ok := range map[string]bool{
		"": true, "_INBOX.abc.1": true, events.ClientInboxPrefix + ".x": true,
		"$KV." + events.Bucket + ".0192f0c1-0000-7000-8000-000000000001": false,
		events.ControlSubject("0192f0c1-0000-7000-8000-000000000001"):    false,
		events.ChildInbox("0192f0c1-0000-7000-8000-000000000001") + ".1": false,
		events.RequestSubject(events.KindSpawn):                          false,
		"$JS.API.STREAM.DELETE.KV_" + events.Bucket:                      false,
	} {
		_, got := r.to(subject)
		require.Equal(t, ok, got, subject)
	}
}

func TestResponseChannelDoesNotBlock(t *testing.T) {
	c := make(responseChannel, 1)
	c.Answer(coordinator.Answer{Reply: 1})
	require.Equal(t, 1, (<-c).Reply)
}

func TestRunRefusesWhatItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	o := Options{}
	o.Paths.State = filepath.Join(file, "state")
	err := Run(context.Background(), o)
	require.True(t, events.HasCode(err, events.CodeStorageFailed), err)
	require.ErrorContains(t, err, "HAYWARD_STATE_DIR")
}
