package worktree

import (
	"context"
	"sort"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// The namespaces of refs in the user's repository.
const (
	baseRefs     = "refs/hayward/base/"
	subagentRefs = "refs/hayward/subagents/"
)

// The last parts of refs below both namespaces.
const (
	RefHead  = "head"
	RefIndex = "index"
	RefTree  = "tree"
	// RefHeads is followed by the name of a branch; only for ends.
	RefHeads = "heads/"
	// refHeld and refStash are for one namespace each.
	refHeld  = "held"
	refStash = "stash"
)

// BaseRef names a ref of what subagent id began with. id must be valid.
func BaseRef(id, name string) string { return baseRefs + id + "/" + name }

// EndRef names a ref of what subagent id ended with. id must be valid.
func EndRef(id, name string) string { return subagentRefs + id + "/" + name }

// checkID refuses what must not become part of a path or ref.
func checkID(id string) *events.Error {
	if !events.ValidID(id) {
		return events.Errorf(events.CodeInvalidID, events.LayerGate, "worktree: %q is not an id", id)
	}
	return nil
}

// validRef reports whether a name may be a ref here. It is narrower than
// git-check-ref-format: printable, and of bounded length.
func validRef(name string) bool {
	if len(name) == 0 || len(name) > 512 || !strings.HasPrefix(name, "refs/") {
		return false
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7f || r == 0xfffd || strings.ContainsRune("~^:?*[\\", r) {
			return false
		}
	}
	if strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.HasSuffix(name, ".") {
		return false
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// validOID reports whether s is an object id of the format: sha1 or sha256.
func validOID(s, format string) bool {
	want := 40
	if format == "sha256" {
		want = 64
	}
	if len(s) != want {
		return false
	}
	for i := range len(s) {
		if strings.IndexByte("0123456789abcdef", s[i]) < 0 {
			return false
		}
	}
	return true
}

// ListRefs returns the refs of subagent id in the user's repository and what they
// point at: "base/tree", "subagents/heads/main" and so on.
func ListRefs(ctx context.Context, commonDir, id string) (map[string]string, *events.Error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	out, err := userGit(commonDir, id).Output(ctx, "for-each-ref", "--format=%(objectname) %(refname)",
		baseRefs+id+"/", subagentRefs+id+"/")
	if err != nil {
		return nil, err
	}
	refs := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if rest, ok := strings.CutPrefix(name, baseRefs+id+"/"); ok {
			refs["base/"+rest] = oid
		} else if rest, ok := strings.CutPrefix(name, subagentRefs+id+"/"); ok {
			refs["subagents/"+rest] = oid
		}
	}
	return refs, nil
}

// UpdateRefs sets refs below refs/hayward, all or none; an empty object id
// deletes. The caller holds [LockRepository].
func UpdateRefs(ctx context.Context, commonDir, id string, refs map[string]string) *events.Error {
	if err := checkID(id); err != nil {
		return err
	}
	names := make([]string, 0, len(refs))
	for name := range refs {
		if !validRef(name) || !strings.HasPrefix(name, baseRefs+id+"/") && !strings.HasPrefix(name, subagentRefs+id+"/") {
			return events.Errorf(events.CodeInternal, events.LayerWorkspace, "worktree %s: %q is no ref of it", id, name)
		}
		names = append(names, name)
	}
	sort.Strings(names)
	var in strings.Builder
	in.WriteString("start\x00")
	for _, name := range names {
		if oid := refs[name]; oid != "" {
			in.WriteString("update " + name + "\x00" + oid + "\x00\x00")
		} else {
			in.WriteString("delete " + name + "\x00\x00")
		}
	}
	in.WriteString("commit\x00")
	return userGit(commonDir, id).Run(ctx, Call{Stdin: strings.NewReader(in.String())}, "update-ref", "-z", "--stdin", "--no-deref")
}

// DeleteRefs deletes every ref of subagent id. The caller holds [LockRepository].
func DeleteRefs(ctx context.Context, commonDir, id string) *events.Error {
	have, err := ListRefs(ctx, commonDir, id)
	if err != nil || len(have) == 0 {
		return err
	}
	gone := make(map[string]string, len(have))
	for name := range have {
		if rest, ok := strings.CutPrefix(name, "base/"); ok {
			gone[BaseRef(id, rest)] = ""
		} else {
			gone[EndRef(id, strings.TrimPrefix(name, "subagents/"))] = ""
		}
	}
	return UpdateRefs(ctx, commonDir, id, gone)
}
