// Package worktree gives a subagent a working tree of its own and brings back
// what it did, so that nothing is lost and nothing of the user's is harmed.
//
// # Where things are
//
// A tree has a git directory of its own that borrows the objects of the user's
// repository; it is not a linked work tree, which would need the user's git
// directory writable. Below the root, by default <state>/worktrees:
//
//	<root>/<id>/record.json   what is known of it, see [Record]; 0600, written atomically
//	<root>/<id>/lease         locked by whoever owns the tree while its subagent lives
//	<root>/<id>/git/          our own clean git directory: no configuration, no hooks, no
//	                          filters; every look at the tree goes through it
//	<root>/<id>/base.index    the index of the baseline, with the stat data of the tree
//	<root>/<id>/<name>/       the working tree, named like the repository; all that the
//	                          subagent sees and the only thing here that it can write
//
// Everything in the working tree, its .git included, is hostile: nothing outside
// ever runs git with it as git directory, configuration or attributes.
//
// # Refs
//
// In the user's repository, and nowhere else, are for each subagent:
//
//	refs/hayward/base/<id>/head        the commit it began at; absent if unborn
//	refs/hayward/base/<id>/index       a commit of what the user had staged
//	refs/hayward/base/<id>/tree        a commit of the bytes it began with: the baseline
//	refs/hayward/base/<id>/held        holds the user's branches as they were then
//	refs/hayward/subagents/<id>/head   its HEAD at the end
//	refs/hayward/subagents/<id>/index  a commit of what it had staged
//	refs/hayward/subagents/<id>/tree   a commit of the bytes of its tree at the end
//	refs/hayward/subagents/<id>/heads/<branch>  each branch it made or moved
//	refs/hayward/subagents/<id>/stash  its stash, if it has one
//
// The trees of base/tree and subagents/tree hold bytes as they are in the files,
// without conversion of line ends or filters, so comparing the two tells what the
// subagent changed. Where a file's mode is not 0644 or 0755, the message of the
// commit says which it is; see [Modes]. base/index, base/head, subagents/index,
// subagents/head and heads are in the form that git keeps.
//
// # Rules
//
// Every run of git goes through [Git]: it has a deadline, asks nothing, runs no
// hook, reads no configuration of user or system, and sees no GIT_* variable of
// the caller. What changes refs of one user's repository holds [LockRepository],
// across processes. Locking order: repository lock, then lease, then nothing.
// The user's index, stash, working tree and refs outside refs/hayward are never
// written here.
package worktree
