package events

// Changes counts what differs between the files a subagent began with and those
// it left, in its own working tree. A binary file counts no lines.
type Changes struct {
	Files      int `json:"files"`
	Insertions int `json:"insertions"`
	Deletions  int `json:"deletions"`
}

// Worktree is the file space of a subagent with a working tree of its own.
type Worktree struct {
	// Path is the working tree's directory.
	Path string `json:"path"`
	// Repository is the top of the user's working tree that it was made from, and
	// BaseCommit its commit then; empty if it had none.
	Repository string `json:"repository"`
	BaseCommit string `json:"base_commit,omitempty"`
	// Kept tells whether the directory is there after the end, KeptFor why.
	Kept    bool     `json:"kept"`
	KeptFor []string `json:"kept_for,omitempty"`
	// Problem is why the refs of its end do not hold everything; the directory is
	// kept then, unless that it is gone is the problem.
	Problem *Error `json:"problem,omitempty"`
}

// ParseIsolation returns the canonical form of an isolation, and whether it is
// one. Nothing at all is [IsolationNone].
func ParseIsolation(s string) (string, bool) {
	switch s {
	case "", IsolationNone, "None":
		return IsolationNone, true
	case IsolationWorktree, "Worktree", "work_tree", "work-tree":
		return IsolationWorktree, true
	}
	return s, false
}
