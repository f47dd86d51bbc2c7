package events

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewID(t *testing.T) {
	last := ""
	for range 1000 {
		id := NewID()
		require.True(t, ValidID(id), id)
		require.Equal(t, byte('7'), id[14], "version 7")
		require.Less(t, last, id, "ids sort by the time they were made")
		last = id
	}
}

func TestValidID(t *testing.T) {
	require.True(t, ValidID(someID))
	for _, bad := range []string{
		"", "x", someID + "\n", "\n" + someID, someID + ".", " " + someID, strings.ToUpper(someID),
		strings.ReplaceAll(someID, "-", ""), "{" + someID + "}", "urn:uuid:" + someID,
		"018f0000-0000-7000-8000-00000000000g", "018f0000_0000_7000_8000_00000000000a",
		"../../../../../../../../../../../../", "*********-****-****-****-***********",
	} {
		require.False(t, ValidID(bad), "%q", bad)
	}
}

func TestDedupeID(t *testing.T) {
	require.Equal(t, someID+".3", DedupeID(someID, 3))
	for _, run := range []int{0, 1, 42} {
		require.True(t, ValidDedupeID(DedupeID(someID, run)))
	}
	for _, bad := range []string{"", ".", someID, someID + ".", someID + ".-1", someID + ".01", someID + ".+1", someID + ".1.1", "x.1", someID + ".1\n"} {
		require.False(t, ValidDedupeID(bad), "%q", bad)
	}
}

func TestValidScopeNameRef(t *testing.T) {
	for _, good := range []string{"s", "A.b_c:d-9", strings.Repeat("x", 128)} {
		require.True(t, ValidScope(good), "%q", good)
	}
	for _, bad := range []string{"", " ", "a/b", "a>b", "a*", "é", "a\n", strings.Repeat("x", 129)} {
		require.False(t, ValidScope(bad), "%q", bad)
	}
	for _, good := range []string{"a", "0", "a.b_c-d"} {
		require.True(t, ValidName(good), "%q", good)
		require.True(t, ValidRef(good), "%q", good)
	}
	for _, bad := range []string{"", "-a", ".a", "_a", "a:b", "a b", "a\n", strings.Repeat("a", 65)} {
		require.False(t, ValidName(bad), "%q", bad)
		require.False(t, ValidRef(bad), "%q", bad)
	}
	require.True(t, ValidRef(someID))
	require.True(t, ValidRef(someID[len(someID)-4:]))
}

// TestSubjects pins the subjects: other programs use them.
func TestSubjects(t *testing.T) {
	for want, got := range map[string]string{
		"hayward.v1.spawn":                        RequestSubject(KindSpawn),
		"hayward.v1.list_active":                  RequestSubject(KindListActive),
		"hayward.v1.files.logs":                   FilesSubject(FilesLogs),
		"hayward.v1.admin.shutdown":               AdminSubject(AdminShutdown),
		"hayward.v1.child." + someID + ".result":  ChildSubject(someID, ChildResult),
		"hayward.v1.child.*.item":                 ChildSubjectAll(ChildItem),
		"hayward.v1.child." + someID + ".control": ControlSubject(someID),
		"hayward.v1.child." + someID + ".>":       ChildPermission(someID),
		"_INBOX_hayward_child." + someID:          ChildInbox(someID),
		"hayward.v1.feed." + someID + ".active":   FeedSubject(someID, StateActive),
		"hayward.v1.feed.>":                       FeedSubjects,
		"hayward.v1.ack":                          AckPrefix,
	} {
		require.Equal(t, want, got)
	}
}

func TestChildIDOf(t *testing.T) {
	for _, r := range []ChildReport{ChildStarted, ChildItem, ChildResult, ChildHeartbeat} {
		id, ok := ChildIDOf(ChildSubject(someID, r))
		require.True(t, ok)
		require.Equal(t, someID, id)
	}
	for _, bad := range []string{
		"", "hayward.v1.child.", "hayward.v1.child." + someID, "hayward.v1.child.*.item", "hayward.v1.child.x.item",
		"hayward.v1.feed." + someID + ".active", "x.hayward.v1.child." + someID + ".item",
	} {
		_, ok := ChildIDOf(bad)
		require.False(t, ok, "%q", bad)
	}
}
