//go:build linux && cgo

// Every step but the mounts.

#define _GNU_SOURCE
#include "early.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/if.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_landlock_add_rule
#define SYS_landlock_add_rule 445
#endif
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#ifndef SECCOMP_SET_MODE_FILTER
#define SECCOMP_SET_MODE_FILTER 1
#endif

// close_from closes first and up, or marks them close-on-exec, without
// close_range (kernels before 5.9, 5.11 for the mark).
static int close_from(unsigned int first, int cloexec)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return errno;
	for (rlim_t fd = first; fd < limit.rlim_max && fd < (1 << 20); fd++) {
		int rc = cloexec ? fcntl((int)fd, F_SETFD, FD_CLOEXEC) : close((int)fd);
		if (rc && errno != EBADF)
			return errno;
	}
	return 0;
}

int hw_descriptors(const struct hw_plan *p, uint64_t *value)
{
	(void)value;
	int err = 0;
	if (syscall(SYS_close_range, HW_FD_LAST + 1, ~0U, 0) && (err = close_from(HW_FD_LAST + 1, 0)))
		return err;
	// The commands' table is 0, 1 and 2 and what the supervisor names.
	if (syscall(SYS_close_range, 3, HW_FD_LAST, CLOSE_RANGE_CLOEXEC)) {
		for (int fd = 3; fd <= HW_FD_LAST; fd++)
			if (fcntl(fd, F_SETFD, FD_CLOEXEC))
				return errno;
	}
	struct rlimit none = { 0, 0 };
	if (setrlimit(RLIMIT_CORE, &none))
		return errno;
	if (p->header->processes) {
		struct rlimit limit;
		if (getrlimit(RLIMIT_NPROC, &limit))
			return errno;
		if (limit.rlim_max > p->header->processes)
			limit.rlim_max = p->header->processes;
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NPROC, &limit))
			return errno;
	}
	if ((p->header->flags & HW_FLAG_SUBREAPER) && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		return errno;
	return 0;
}

// own_namespace tells whether the namespace behind path is not the parent's.
static int own_namespace(const char *path, uint64_t parents)
{
	struct stat st;
	if (stat(path, &st))
		return errno;
	return (uint64_t)st.st_ino != parents ? 0 : EPERM;
}

// loopback_up brings up the one device of a new network namespace.
static int loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	int err = ioctl(fd, SIOCGIFFLAGS, &request) ? errno : 0;
	request.ifr_flags |= IFF_UP;
	if (!err && ioctl(fd, SIOCSIFFLAGS, &request))
		err = errno;
	if (!err && ioctl(fd, SIOCGIFFLAGS, &request))
		err = errno;
	close(fd);
	return err ? err : (request.ifr_flags & IFF_UP) ? 0 : EPERM;
}

int hw_namespaces(const struct hw_plan *p, uint64_t *value)
{
	const struct hw_header *h = p->header;
	const struct {
		uint32_t flag;
		const char *path;
		uint64_t parents;
	} all[] = {
		{ HW_FLAG_USER_NS, "/proc/self/ns/user", h->user_ns },
		{ HW_FLAG_PID_NS, "/proc/self/ns/pid", h->pid_ns },
		{ HW_FLAG_MOUNT_NS, "/proc/self/ns/mnt", h->mount_ns },
		{ HW_FLAG_IPC_NS, "/proc/self/ns/ipc", h->ipc_ns },
		{ HW_FLAG_NET_NS, "/proc/self/ns/net", h->net_ns },
	};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (!(h->flags & all[i].flag))
			continue;
		int err = own_namespace(all[i].path, all[i].parents);
		if (err)
			return err;
		*value |= all[i].flag;
	}
	if ((h->flags & HW_FLAG_PID_NS) && getpid() != 1)
		return EPERM;
	return (h->flags & HW_FLAG_LOOPBACK) ? loopback_up() : 0;
}

static int drop_bounding(void)
{
	// execve as uid 0 takes its capabilities from here, whatever the sets say.
	for (int cap = 0; cap < 64; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (has < 0)
			break;
		if (has && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return errno;
	}
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
				   SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
				   SECBIT_KEEP_CAPS_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) ? errno : 0;
}

static int drop_sets(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2], none[2];
	memset(none, 0, sizeof none);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return errno;
	if (syscall(SYS_capset, &head, none))
		return errno;
	head.version = _LINUX_CAPABILITY_VERSION_3;
	if (syscall(SYS_capget, &head, sets))
		return errno;
	return memcmp(sets, none, sizeof none) ? EPERM : 0;
}

static int bounding_empty(void)
{
	for (int cap = 0; cap < 64; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (has < 0)
			break;
		if (has)
			return EPERM;
	}
	return 0;
}

static int not_dumpable(void)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return errno;
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : EPERM;
}

// hw_capabilities does all it can and returns the first error, so that a
// best-effort plan keeps no more than it must.
int hw_capabilities(const struct hw_plan *p, uint64_t *value)
{
	const uint32_t flags = p->header->flags;
	int err = 0, next;
	(void)value;
	if (flags & HW_FLAG_BOUNDING) {
		if (!(err = drop_bounding()))
			err = bounding_empty();
	}
	if ((flags & HW_FLAG_CAPS) && (next = drop_sets()) && !err)
		err = next;
	// After the last change of credentials, which would set it again.
	if ((flags & HW_FLAG_NOT_DUMPABLE) && (next = not_dumpable()) && !err)
		err = next;
	return err;
}

int hw_no_new_privs(const struct hw_plan *p, uint64_t *value)
{
	(void)p;
	(void)value;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return errno;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : EPERM;
}

// open_proc adds the rule for the /proc of the own PID namespace: the parent,
// which made all others, could not see it.
static int open_proc(void)
{
	struct {
		uint64_t access;
		int32_t fd;
	} __attribute__((packed)) rule = { 1 | 4 | 8, -1 }; // execute, read files and directories
	rule.fd = open("/proc", O_PATH | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY);
	if (rule.fd < 0)
		return errno;
	int err = syscall(SYS_landlock_add_rule, HW_FD_RULESET, 1, &rule, 0) ? errno : 0;
	close(rule.fd);
	return err;
}

int hw_landlock(const struct hw_plan *p, uint64_t *value)
{
	*value = p->header->landlock_abi;
	if (p->header->flags & HW_FLAG_PROC_READ) {
		int err = open_proc();
		if (err)
			return err;
	}
	if (syscall(SYS_landlock_restrict_self, HW_FD_RULESET, p->header->landlock_flags))
		return errno;
	return 0;
}

int hw_seccomp(const struct hw_plan *p, uint64_t *value)
{
	static struct sock_filter code[BPF_MAXINSNS];
	struct stat st;
	(void)p;
	int err = hw_sealed(HW_FD_FILTER);
	if (err)
		return err;
	if (fstat(HW_FD_FILTER, &st))
		return errno;
	if (st.st_size == 0 || st.st_size % (off_t)sizeof code[0] || st.st_size > (off_t)sizeof code)
		return EBADMSG;
	// The description is shared with other children, so its offset is not ours.
	ssize_t n = pread(HW_FD_FILTER, code, (size_t)st.st_size, 0);
	if (n < 0)
		return errno;
	if (n != st.st_size)
		return EBADMSG;
	struct sock_fprog program = { (unsigned short)((size_t)n / sizeof code[0]), code };
	*value = program.len;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		return errno;
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 ? 0 : EPERM;
}
