package worktree

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// neutral attributes keep git from looking at bytes; they count more than any
// file of attributes in a tree.
const neutral = "* -text !eol !crlf !filter !ident !working-tree-encoding\n"

// format writes the settings of a git directory of the format.
func formatOf(format string) []setting {
	s := []setting{{"core.bare", "false"}}
	if format == "sha256" {
		return append([]setting{{"core.repositoryformatversion", "1"}, {"extensions.objectformat", "sha256"}}, s...)
	}
	return append([]setting{{"core.repositoryformatversion", "0"}}, s...)
}

// makeCleanGit makes our own git directory for a tree: it borrows all objects and
// configures nothing.
func makeCleanGit(dir, format string, objects []string, excludes string) error {
	return makeGitDir(dir, map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  formatSettings(formatOf(format)),
		"objects/info/alternates": alternatesFile(objects),
		"info/attributes":         neutral,
		"info/exclude":            excludes,
	})
}

// makeOwnGit makes the git directory that the subagent has: on the user's branch,
// with their branches, remotes and tags, and an index with the stat data of the
// new tree.
func (r *repository) makeOwnGit(dir, excludes string, index []byte) error {
	head := r.head + "\n"
	if r.branch != "" {
		head = "ref: " + r.branch + "\n"
	}
	files := map[string]string{
		"HEAD":                    head,
		"config":                  formatSettings(append(append(formatOf(r.format), setting{"core.logallrefupdates", "true"}), r.settings.carried()...)),
		"objects/info/alternates": alternatesFile(r.objects),
		"info/exclude":            excludes,
		"index":                   string(index),
		"description":             "Working tree of a subagent; it borrows the objects of " + r.commonDir + "\n",
	}
	if len(r.shallow) > 0 {
		files["shallow"] = string(r.shallow)
	}
	var packed strings.Builder
	packed.WriteString("# pack-refs with: sorted\n")
	for _, ref := range r.refs {
		switch {
		case !validRef(ref.name):
		case ref.symbolic != "":
			files[ref.name] = "ref: " + ref.symbolic + "\n"
		default:
			packed.WriteString(ref.oid + " " + ref.name + "\n")
		}
	}
	files["packed-refs"] = packed.String()
	return makeGitDir(dir, files)
}

func alternatesFile(objects []string) string {
	var b strings.Builder
	for _, dir := range objects {
		if strings.Contains(dir, "\n") {
			dir = quoteAlternate(dir)
		}
		b.WriteString(dir + "\n")
	}
	return b.String()
}

func makeGitDir(dir string, files map[string]string) error {
	for _, d := range []string{"", "objects/pack", "objects/info", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// copyTags gives the subagent's git directory what no commit holds: annotated tags
// themselves, and what stands for files that are only meant to be added.
func (r *repository) copyTags(ctx context.Context, clean Git, dir string) error {
	var in strings.Builder
	for _, ref := range r.refs {
		if ref.kind == "tag" {
			in.WriteString(ref.oid + "\n")
		}
	}
	for i := range r.index.entries {
		if e := &r.index.entries[i]; e.intentToAdd() {
			in.WriteString(hex.EncodeToString(e.oid) + "\n")
		}
	}
	if in.Len() == 0 {
		return nil
	}
	err := clean.Run(ctx, Call{Stdin: strings.NewReader(in.String())}, "pack-objects", "-q", filepath.Join(dir, "objects/pack/pack"))
	if err != nil {
		return err
	}
	return nil
}

// held writes a commit whose parents are all commits that the user's refs lead to,
// and returns its id: as long as a ref holds it, no branch that the subagent sees
// loses an object. Empty if there is none.
func (r *repository) held(ctx context.Context, clean Git, tree, when string) (string, error) {
	seen := make(map[string]bool)
	var b strings.Builder
	b.WriteString("tree " + tree + "\n")
	for _, ref := range r.refs {
		oid, kind := ref.oid, ref.kind
		if kind == "tag" {
			oid, kind = ref.peeled, ref.peeledKind
		}
		if kind == "commit" && !seen[oid] {
			seen[oid] = true
			b.WriteString("parent " + oid + "\n")
		}
	}
	if len(seen) == 0 {
		return "", nil
	}
	who := "Hayward <hayward@localhost> " + when
	b.WriteString("author " + who + "\ncommitter " + who + "\n\nhayward: what the branches of " + r.id + " led to\n")
	out, err := clean.OutputOf(ctx, Call{Stdin: strings.NewReader(b.String())}, "hash-object", "-t", "commit", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}
