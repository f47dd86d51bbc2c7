//go:build linux && cgo

// The mount operations. Paths are opened without following a symbolic link in
// any component, so nobody can swap a directory for a link between the plan
// and its execution; every operation is verified after all of them were made.

#define _GNU_SOURCE
#include "early.h"
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int held[HW_MAX_OPS];

int hw_open_path(const char *path)
{
	struct how how = { O_PATH | O_CLOEXEC, 0, NO_SYMLINKS | NO_MAGICLINKS };
	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

int hw_set_attributes(int fd, const char *path, unsigned int flags, uint64_t set)
{
	struct attributes a = { set, 0, 0, 0 };
	return syscall(SYS_mount_setattr, fd, path, flags, &a, sizeof a) ? errno : 0;
}

int hw_copy_tree(int fd, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, fd, "", TREE_CLONE | TREE_CLOEXEC | EMPTY_PATH | flags);
}

int hw_attach(int tree, const char *path)
{
	int target = hw_open_path(path);
	if (target < 0)
		return errno;
	int err = 0;
	if (syscall(SYS_move_mount, tree, "", target, "", MOVE_F_EMPTY_PATH | MOVE_T_EMPTY_PATH))
		err = errno;
	close(target);
	return err;
}

static int hold(uint32_t op, const char *path)
{
	int fd = hw_open_path(path);
	if (fd < 0)
		return errno;
	int tree = hw_copy_tree(fd, RECURSIVE), err = tree < 0 ? errno : 0;
	close(fd);
	held[op] = tree;
	return err;
}

// put_back attaches the tree that operation op held, with attributes added.
static int put_back(uint32_t op, const char *target, uint64_t set)
{
	if (held[op] < 0)
		return EBADF;
	int err = hw_set_attributes(held[op], "", EMPTY_PATH | RECURSIVE, set);
	if (!err)
		err = hw_attach(held[op], target);
	close(held[op]);
	held[op] = -1;
	return err;
}

// bind puts a copy of source at target with attributes added, to all its mounts
// if flags is RECURSIVE.
static int bind(const char *source, const char *target, unsigned int flags, uint64_t set)
{
	int fd = hw_open_path(source);
	if (fd < 0)
		return errno;
	int tree = hw_copy_tree(fd, RECURSIVE), err = tree < 0 ? errno : 0;
	close(fd);
	if (err)
		return err;
	if (set)
		err = hw_set_attributes(tree, "", EMPTY_PATH | flags, set);
	if (!err)
		err = hw_attach(tree, target);
	close(tree);
	return err;
}

int hw_cover(const char *path, unsigned long flags, const char *options)
{
	char target[64];
	int fd = hw_open_path(path);
	if (fd < 0)
		return errno;
	snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
	int err = 0;
	if (mount("hayward-hidden", target, "tmpfs", flags | MS_NOSUID | MS_NODEV | MS_NOEXEC, options))
		err = errno;
	close(fd);
	return err;
}

// make_way makes the directories of the relative path rest below the directory at
// fd. It closes fd.
static int make_way(int fd, const char *rest)
{
	int err = 0;
	while (!err && *rest) {
		char name[256];
		size_t n = strcspn(rest, "/");
		if (n == 0 || n >= sizeof name) {
			err = ENAMETOOLONG;
			break;
		}
		memcpy(name, rest, n);
		name[n] = 0;
		rest += rest[n] ? n + 1 : n;
		int next = -1;
		if (mkdirat(fd, name, 0700) || (next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
			err = errno;
		close(fd);
		fd = next;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

// leave_only covers the directory path so that nothing but the directory keep,
// which is below it, is left.
static int leave_only(const char *path, const char *keep)
{
	char options[64];
	const size_t n = strlen(path);
	unsigned int inodes = 2;
	if (strncmp(path, keep, n) || keep[n] != '/')
		return EINVAL;
	for (const char *c = keep + n; *c; c++)
		inodes += *c == '/';
	int fd = hw_open_path(keep);
	if (fd < 0)
		return errno;
	int tree = hw_copy_tree(fd, RECURSIVE), err = tree < 0 ? errno : 0;
	close(fd);
	if (err)
		return err;
	snprintf(options, sizeof options, "mode=755,size=4k,nr_inodes=%u", inodes);
	if (!(err = hw_cover(path, 0, options))) {
		// What is on top now is the empty one just made: no name of the host's is.
		fd = hw_open_path(path);
		err = fd < 0 ? errno : make_way(fd, keep + n + 1);
	}
	if (!err)
		err = hw_attach(tree, keep);
	close(tree);
	return err ? err : hw_set_attributes(AT_FDCWD, path, 0, ATTR_RDONLY);
}

static int write_pid_max(uint32_t value)
{
	char text[16];
	int n = snprintf(text, sizeof text, "%u", value);
	int fd = open("/proc/sys/kernel/pid_max", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	int err = write(fd, text, (size_t)n) == n ? 0 : errno;
	close(fd);
	return err;
}

static int is_mask(int kind)
{
	return kind == HW_OP_MASK_DIR || kind == HW_OP_MASK_FILE || kind == HW_OP_MASK_SOCKET;
}

static int make(const struct hw_plan *p, uint32_t i)
{
	const struct hw_op *o = &p->ops[i];
	const char *source = p->base + o->source, *target = p->base + o->target;
	if (is_mask(o->kind))
		return hw_mask(o->kind, target);
	switch (o->kind) {
	case HW_OP_PRIVATE:
		return mount(NULL, target, NULL, MS_REC | MS_PRIVATE, NULL) ? errno : 0;
	case HW_OP_HOLD:
		return hold(i, target);
	case HW_OP_READ_ONLY:
		return hw_set_attributes(AT_FDCWD, target, RECURSIVE, ATTR_RDONLY | ATTR_NOSUID);
	case HW_OP_PLACE:
		return put_back(o->value, target, ATTR_NOSUID);
	case HW_OP_BIND_FILE:
		return put_back(o->value, target, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC);
	case HW_OP_PIN:
		return bind(target, target, 0, 0);
	case HW_OP_ONLY:
		return leave_only(target, source);
	case HW_OP_CLOSE:
		return bind(target, target, RECURSIVE, ATTR_RDONLY | ATTR_NOSUID);
	case HW_OP_PROC:
		return mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ? errno : 0;
	case HW_OP_PID_MAX:
		return write_pid_max(o->value);
	}
	return ENOSYS;
}

int hw_mounted(int fd)
{
	struct statx st;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st))
		return errno;
	return (st.stx_attributes_mask & IS_MOUNT_ROOT) && (st.stx_attributes & IS_MOUNT_ROOT) ? 0 : EPERM;
}

int hw_verify_flags(int fd, unsigned long want, long type)
{
	struct statfs fs;
	if (fstatfs(fd, &fs))
		return errno;
	if (type && (unsigned long)fs.f_type != (unsigned long)type)
		return EPERM;
	return ((unsigned long)fs.f_flags & want) == want ? 0 : EPERM;
}

static int verify_proc(void)
{
	char self[16];
	ssize_t n = readlink("/proc/self", self, sizeof self);
	if (n < 0)
		return errno;
	return n == 1 && self[0] == '1' ? 0 : EPERM;
}

static int verify_pid_max(uint32_t value)
{
	char text[16] = { 0 };
	unsigned int got = 0;
	int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	return n > 0 && sscanf(text, "%u", &got) == 1 && got == value ? 0 : EPERM;
}

// verify_at looks at what is mounted at fd, the target of o. keep is what
// HW_OP_ONLY left in it.
static int verify_at(const struct hw_op *o, int fd, const char *keep)
{
	// MS_RDONLY, MS_NOSUID, MS_NODEV and MS_NOEXEC have the values of ST_*.
	const unsigned long closed = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
	int err = hw_mounted(fd);
	if (err)
		return err;
	switch (o->kind) {
	case HW_OP_READ_ONLY:
		return hw_verify_flags(fd, MS_RDONLY | MS_NOSUID, 0);
	case HW_OP_PLACE:
		return hw_verify_flags(fd, MS_NOSUID, 0);
	case HW_OP_BIND_FILE:
		return hw_verify_flags(fd, closed, 0);
	case HW_OP_ONLY:
		if ((err = hw_verify_flags(fd, closed, FS_TMPFS)))
			return err;
		if ((fd = hw_open_path(keep)) < 0)
			return errno;
		err = hw_mounted(fd);
		close(fd);
		return err;
	case HW_OP_CLOSE:
		return hw_verify_flags(fd, MS_RDONLY | MS_NOSUID, 0);
	case HW_OP_PROC:
		if ((err = hw_verify_flags(fd, 0, FS_PROC)))
			return err;
		return verify_proc();
	}
	return 0;
}

// verify looks at what operation i left behind, through the path that a
// command would use.
static int verify(const struct hw_plan *p, uint32_t i)
{
	const struct hw_op *o = &p->ops[i];
	const char *target = p->base + o->target;
	if (o->kind == HW_OP_PRIVATE || o->kind == HW_OP_HOLD)
		return 0;
	if (o->kind == HW_OP_PID_MAX)
		return verify_pid_max(o->value);
	if (is_mask(o->kind))
		return hw_masked(o->kind, target);
	int fd = hw_open_path(target);
	if (fd < 0)
		return errno;
	int err = verify_at(o, fd, p->base + o->source);
	close(fd);
	return err;
}

// note handles the failure of operation i: it ends the step, unless the plan is
// a best-effort one, which records it and goes on.
static int note(const struct hw_plan *p, uint32_t i, int err, uint64_t *value)
{
	if ((p->header->required & (1u << HW_STEP_MOUNTS)) || p->ops[i].kind == HW_OP_PRIVATE) {
		*value = i;
		return err;
	}
	hw_record(HW_STEP_MOUNTS, 1, err, i);
	return 0;
}

int hw_mounts(const struct hw_plan *p, uint64_t *value)
{
	static unsigned char failed[HW_MAX_OPS];
	const uint32_t count = p->header->op_count;
	int err;
	for (uint32_t i = 0; i < count; i++)
		held[i] = -1;
	for (uint32_t i = 0; i < count; i++) {
		if (!is_mask(p->ops[i].kind))
			hw_mask_moved();
		if (!(err = make(p, i)))
			continue;
		if ((err = note(p, i, err, value)))
			return err;
		failed[i] = 1;
	}
	hw_mask_moved();
	for (uint32_t i = 0; i < count; i++) {
		if (failed[i] || !(err = verify(p, i)))
			continue;
		if ((err = note(p, i, err, value)))
			return err;
	}
	hw_mask_done();
	// What we stand in was opened before the mounts and may be wider than they are.
	if (chdir("/"))
		return errno;
	*value = count;
	return 0;
}
