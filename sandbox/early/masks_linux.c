//go:build linux && cgo

// The masks: what is put over a path so that nothing inside reaches what is
// there. A file and a socket get a device that cannot be opened, a directory an
// empty one. The first mask of a kind is made and examined in full; every further
// one is a copy of its mount, which has its flags, so a thousand of them cost no
// more than a thousand mounts. A path is reached through its directory, which is
// opened without following a link and kept open for the next path in it.

#define _GNU_SOURCE
#include "early.h"
#include "mounts.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

// MS_RDONLY, MS_NOSUID, MS_NODEV and MS_NOEXEC have the values of ST_*.
static const unsigned long closed = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

// A sample is the first mask of its kind: fd is open on it, or -1.
struct sample {
	int fd, proven;
	struct statx is;
};

static struct sample file = { -1, 0, { 0 } }, directory = { -1, 0, { 0 } };

static struct sample *sample_of(int kind) { return kind == HW_OP_MASK_DIR ? &directory : &file; }

// The directory of the last path, -1 if none is kept.
static int kept = -1;
static const char *kept_path;
static size_t kept_length;

void hw_mask_moved(void)
{
	if (kept >= 0)
		close(kept);
	kept = -1;
}

void hw_mask_done(void)
{
	hw_mask_moved();
	for (int i = 0; i < 2; i++) {
		struct sample *s = i ? &directory : &file;
		if (s->fd >= 0)
			close(s->fd);
		s->fd = -1;
	}
}

// directory_of opens the directory of path and points name at the last component.
static int directory_of(const char *path, const char **name)
{
	char parent[4096]; // PATH_MAX
	const char *slash = strrchr(path, '/');
	size_t length = slash == path ? 1 : (size_t)(slash - path);
	*name = slash + 1;
	if (kept >= 0 && length == kept_length && !memcmp(path, kept_path, length))
		return 0;
	hw_mask_moved();
	if (length >= sizeof parent)
		return ENAMETOOLONG;
	memcpy(parent, path, length);
	parent[length] = 0;
	if ((kept = hw_open_path(parent)) < 0)
		return errno;
	kept_path = path;
	kept_length = length;
	return 0;
}

static int look(int fd, const char *name, int flags, struct statx *st)
{
	return statx(fd, name, flags | AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, st) ? errno : 0;
}

// covers tells whether a mask of the kind belongs on what is at path: 0, an errno,
// or -1 for a socket that has vanished or become something else since the plan was
// made: then there is nothing to hide.
static int covers(int kind, const char *path)
{
	struct statx st;
	const char *name;
	int err = directory_of(path, &name);
	if (!err)
		err = look(kept, name, 0, &st);
	if (kind == HW_OP_MASK_SOCKET) {
		if (err == ENOENT || err == ENOTDIR || err == ELOOP || err == EACCES)
			return -1;
		return err ? err : S_ISSOCK(st.stx_mode) ? 0 : -1;
	}
	if (!err && S_ISLNK(st.stx_mode))
		err = ELOOP;
	return err;
}

// device covers path by the null device on a mount that has no devices: it can be
// neither opened nor connected, whoever asks.
static int device(const char *path)
{
	int fd = hw_open_path("/dev/null");
	if (fd < 0)
		return errno;
	int tree = hw_copy_tree(fd, 0), err = tree < 0 ? errno : 0;
	close(fd);
	if (err)
		return err;
	if (!(err = hw_set_attributes(tree, "", EMPTY_PATH, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC)))
		err = hw_attach(tree, path);
	close(tree);
	return err;
}

// first makes the mask that the others of its kind are copies of.
static int first(struct sample *s, const char *path)
{
	int err = s == &directory ? hw_cover(path, MS_RDONLY, "mode=000,size=4k,nr_inodes=2") : device(path);
	if (err)
		return err;
	if ((s->fd = hw_open_path(path)) < 0)
		return errno;
	return look(s->fd, "", AT_EMPTY_PATH, &s->is);
}

static int copy(struct sample *s, const char *name)
{
	int tree = hw_copy_tree(s->fd, 0);
	if (tree < 0)
		return errno;
	int err = 0;
	// Without a flag that says so, a link in the place of name is not followed.
	if (syscall(SYS_move_mount, tree, "", kept, name, MOVE_F_EMPTY_PATH))
		err = errno;
	close(tree);
	return err;
}

int hw_mask(int kind, const char *path)
{
	struct sample *s = sample_of(kind);
	int err = covers(kind, path);
	if (err)
		return err < 0 ? 0 : err;
	return s->fd < 0 ? first(s, path) : copy(s, strrchr(path, '/') + 1);
}

// prove examines the sample, which name in the kept directory shows or a copy of
// it does: its type, its flags, and that it is empty or cannot be opened, with all
// the capabilities that there are at this time.
static int prove(struct sample *s, const char *name)
{
	int err = hw_mounted(s->fd);
	if (!err)
		err = hw_verify_flags(s->fd, closed, s == &directory ? FS_TMPFS : 0);
	if (err)
		return err;
	if (s == &directory) {
		if (!S_ISDIR(s->is.stx_mode) || (s->is.stx_mode & 07777))
			return EPERM;
	} else {
		int fd = openat(kept, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			close(fd);
		if (fd >= 0 || errno != EACCES || !S_ISCHR(s->is.stx_mode))
			return EPERM;
	}
	s->proven = 1;
	return 0;
}

int hw_masked(int kind, const char *path)
{
	struct sample *s = sample_of(kind);
	struct statx st;
	const char *name;
	int err = directory_of(path, &name);
	if (!err)
		err = look(kept, name, 0, &st);
	if (kind == HW_OP_MASK_SOCKET && (err || (!S_ISSOCK(st.stx_mode) && !S_ISCHR(st.stx_mode))))
		return 0; // vanished before it could be hidden: it was skipped as well
	if (err)
		return err;
	// The root of a mount, and of the very file that the sample shows.
	if (!(st.stx_attributes_mask & st.stx_attributes & IS_MOUNT_ROOT) || st.stx_ino != s->is.stx_ino ||
	    st.stx_dev_major != s->is.stx_dev_major || st.stx_dev_minor != s->is.stx_dev_minor)
		return EPERM;
	return s->proven ? 0 : prove(s, name);
}
