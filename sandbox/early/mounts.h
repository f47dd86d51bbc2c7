//go:build linux && cgo

// What the files of the mount operations share.

#ifndef HAYWARD_MOUNTS_H
#define HAYWARD_MOUNTS_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

// The kernel's numbers; libc headers differ in which of them they have.
enum {
	TREE_CLONE = 1,
	TREE_CLOEXEC = O_CLOEXEC,
	MOVE_F_EMPTY_PATH = 0x4,
	MOVE_T_EMPTY_PATH = 0x40,
	RECURSIVE = 0x8000,
	EMPTY_PATH = 0x1000,
	ATTR_RDONLY = 0x1,
	ATTR_NOSUID = 0x2,
	ATTR_NODEV = 0x4,
	ATTR_NOEXEC = 0x8,
	NO_MAGICLINKS = 0x02,
	NO_SYMLINKS = 0x04,
};

#define FS_TMPFS 0x01021994
#define FS_PROC 0x9fa0
#define IS_MOUNT_ROOT 0x2000 // STATX_ATTR_MOUNT_ROOT

struct attributes {
	uint64_t set, clear, propagation, userns_fd;
};

struct how {
	uint64_t flags, mode, resolve;
};

// hw_open_path returns an O_PATH descriptor of what is at path, reached without a
// symbolic link, or -1 with errno set.
int hw_open_path(const char *path);

// hw_copy_tree returns a detached copy of the mount at fd, or of all mounts
// there if flags is RECURSIVE, or -1 with errno set.
int hw_copy_tree(int fd, unsigned int flags);

// hw_set_attributes adds attributes to the mounts at path below fd.
int hw_set_attributes(int fd, const char *path, unsigned int flags, uint64_t set);

// hw_attach puts the detached tree at path.
int hw_attach(int tree, const char *path);

// hw_cover mounts an empty directory over the one at path.
int hw_cover(const char *path, unsigned long flags, const char *options);

// hw_mounted checks that something is mounted exactly at fd.
int hw_mounted(int fd);

// hw_verify_flags checks the flags, and the type if it is not 0, of the file
// system at fd.
int hw_verify_flags(int fd, unsigned long want, long type);

// hw_mask makes the operation kind, one of HW_OP_MASK_*, at path; hw_masked
// verifies it. Both return 0 or an errno. hw_mask_moved is to be called after
// anything else was mounted, hw_mask_done at the end.
int hw_mask(int kind, const char *path);
int hw_masked(int kind, const char *path);
void hw_mask_moved(void);
void hw_mask_done(void);

#endif
