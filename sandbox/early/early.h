//go:build linux && cgo

// What the constructor's files share. The numbers repeat internal/handoff and
// sandbox/internal/layout; early_linux.go does not compile when they differ.

#ifndef HAYWARD_EARLY_H
#define HAYWARD_EARLY_H

#include <stdint.h>

enum {
	HW_FD_PLAN = 3,
	HW_FD_START = 4,
	HW_FD_STATUS = 5,
	HW_FD_RULESET = 12,
	HW_FD_FILTER = 13,
	HW_FD_LAST = 13,
};

enum {
	HW_STEP_PLAN = 1,
	HW_STEP_START = 2,
	HW_STEP_FDS = 3,
	HW_STEP_NAMESPACES = 4,
	HW_STEP_MOUNTS = 5,
	HW_STEP_CAPS = 6,
	HW_STEP_NO_NEW_PRIVS = 7,
	HW_STEP_LANDLOCK = 8,
	HW_STEP_SECCOMP = 9,
	HW_STEP_CONFINED = 10,
};

enum {
	HW_FLAG_ENFORCED = 1 << 0,
	HW_FLAG_USER_NS = 1 << 1,
	HW_FLAG_PID_NS = 1 << 2,
	HW_FLAG_MOUNT_NS = 1 << 3,
	HW_FLAG_IPC_NS = 1 << 4,
	HW_FLAG_MOUNTS = 1 << 5,
	HW_FLAG_CAPS = 1 << 6,
	HW_FLAG_BOUNDING = 1 << 7,
	HW_FLAG_NO_NEW_PRIVS = 1 << 8,
	HW_FLAG_LANDLOCK = 1 << 9,
	HW_FLAG_SECCOMP = 1 << 10,
	HW_FLAG_NOT_DUMPABLE = 1 << 11,
	HW_FLAG_SUBREAPER = 1 << 12,
	HW_FLAG_NET_NS = 1 << 13,
	HW_FLAG_LOOPBACK = 1 << 14,
	HW_FLAG_PROC_READ = 1 << 15,
};

enum {
	HW_OP_PRIVATE = 1,
	HW_OP_HOLD = 2,
	HW_OP_READ_ONLY = 3,
	HW_OP_PLACE = 4,
	HW_OP_PIN = 5,
	HW_OP_BIND_FILE = 6,
	HW_OP_MASK_DIR = 7,
	HW_OP_MASK_SOCKET = 8,
	HW_OP_PROC = 9,
	HW_OP_PID_MAX = 10,
	HW_OP_ONLY = 11,
	HW_OP_CLOSE = 12,
	HW_OP_MASK_FILE = 13,
};

enum {
	HW_VERSION = 2,
	HW_MAX_SIZE = 4 << 20,
	HW_MAX_OPS = 8192,
	HW_EXIT_FAILED = 125,
};

struct hw_header {
	char magic[8];
	uint32_t version, size, flags, required;
	uint32_t landlock_abi, landlock_flags, op_count, op_offset;
	uint64_t processes, user_ns, pid_ns, mount_ns, ipc_ns, net_ns;
};

struct hw_op {
	uint16_t kind, reserved;
	uint32_t source, target, value;
};

struct hw_record {
	uint16_t step, skipped;
	int32_t error;
	uint64_t value;
};

// A validated plan, mapped read-only.
struct hw_plan {
	const struct hw_header *header;
	const struct hw_op *ops;
	const char *base;
};

// The state that Go reads: 0 not launched through a plan, 1 confined.
extern int hw_confined;
// 1 when the plan was one of an enforced profile.
extern int hw_enforced;

// The timer slack in ns that this process was started with, 0 if it has it still.
extern unsigned long hw_timer_slack;
void hw_threads(void);

void hw_record(int step, int skipped, int error, uint64_t value);

// Each step returns 0 or an errno and sets *value for the record.
int hw_descriptors(const struct hw_plan *p, uint64_t *value);
int hw_namespaces(const struct hw_plan *p, uint64_t *value);
int hw_mounts(const struct hw_plan *p, uint64_t *value);
int hw_capabilities(const struct hw_plan *p, uint64_t *value);
int hw_no_new_privs(const struct hw_plan *p, uint64_t *value);
int hw_landlock(const struct hw_plan *p, uint64_t *value);
int hw_seccomp(const struct hw_plan *p, uint64_t *value);

// A memfd that nobody can change any more: 0 or an errno.
int hw_sealed(int fd);

#endif
