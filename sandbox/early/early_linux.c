//go:build linux && cgo

// The constructor: it runs before the Go runtime, while the process has one
// thread, so that every thread made later is confined alike. It reads
// descriptors only; argv and the environment are never looked at.

#define _GNU_SOURCE
#include "early.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int hw_confined;
int hw_enforced;

_Static_assert(sizeof(struct hw_header) == 88, "header layout");
_Static_assert(sizeof(struct hw_op) == 16, "operation layout");
_Static_assert(sizeof(struct hw_record) == 16, "record layout");

// hw_record writes one status record. A reader that is gone is no reason to
// stop: a child outlives its coordinator.
void hw_record(int step, int skipped, int error, uint64_t value)
{
	struct hw_record r = { (uint16_t)step, (uint16_t)skipped, error, value };
	while (write(HW_FD_STATUS, &r, sizeof r) < 0 && errno == EINTR)
		;
}

static void fail(int step, int error, uint64_t value)
{
	hw_record(step, 0, error, value);
	_exit(HW_EXIT_FAILED);
}

int hw_sealed(int fd)
{
	const int want = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0)
		return errno;
	return (seals & want) == want ? 0 : EPERM;
}

static int valid_string(const struct hw_header *h, uint32_t at, uint32_t from)
{
	return at == 0 || (at >= from && at < h->size);
}

// load maps the plan and checks that nothing in it points outside of it.
static int load(struct hw_plan *p)
{
	struct stat st;
	int err = hw_sealed(HW_FD_PLAN);
	if (err)
		return err;
	if (fstat(HW_FD_PLAN, &st))
		return errno;
	if (st.st_size < (off_t)sizeof(struct hw_header) || st.st_size > HW_MAX_SIZE)
		return EBADMSG;
	const char *base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, HW_FD_PLAN, 0);
	if (base == MAP_FAILED)
		return errno;
	const struct hw_header *h = (const struct hw_header *)base;
	if (memcmp(h->magic, "HAYWPLAN", sizeof h->magic) || h->version != HW_VERSION)
		return EBADMSG;
	if (h->size != (uint64_t)st.st_size || h->op_count > HW_MAX_OPS || h->op_offset != sizeof *h)
		return EBADMSG;
	uint64_t strings = sizeof *h + (uint64_t)h->op_count * sizeof(struct hw_op);
	if (strings >= h->size || base[h->size - 1] != 0)
		return EBADMSG;
	p->header = h;
	p->ops = (const struct hw_op *)(base + sizeof *h);
	p->base = base;
	for (uint32_t i = 0; i < h->op_count; i++) {
		const struct hw_op *o = &p->ops[i];
		if (o->kind < HW_OP_PRIVATE || o->kind > HW_OP_MASK_FILE)
			return EBADMSG;
		if (!valid_string(h, o->source, (uint32_t)strings) || !valid_string(h, o->target, (uint32_t)strings))
			return EBADMSG;
		if (o->target == 0 && o->kind != HW_OP_PID_MAX)
			return EBADMSG;
		if (o->source == 0 && o->kind == HW_OP_ONLY)
			return EBADMSG;
		if ((o->kind == HW_OP_PLACE || o->kind == HW_OP_BIND_FILE) && (o->value >= i || p->ops[o->value].kind != HW_OP_HOLD))
			return EBADMSG;
	}
	return 0;
}

// wait_for_start blocks until the coordinator has recorded this process. End
// of file means that it never will: nothing of the plan may happen then.
static int wait_for_start(void)
{
	char b;
	for (;;) {
		ssize_t n = read(HW_FD_START, &b, 1);
		if (n == 1)
			return 0;
		if (n == 0)
			_exit(HW_EXIT_FAILED);
		if (errno != EINTR)
			return errno;
	}
}

struct step {
	int number;
	uint32_t flags; // of the plan; 0: always
	int (*run)(const struct hw_plan *, uint64_t *);
};

// The order is part of the contract: descriptors before anything can leak
// through them, mounts while there are capabilities, Landlock after the mounts
// because it forbids them, seccomp last because it forbids what the others need.
static const struct step steps[] = {
	{ HW_STEP_FDS, 0, hw_descriptors },
	{ HW_STEP_NAMESPACES, HW_FLAG_USER_NS | HW_FLAG_PID_NS | HW_FLAG_MOUNT_NS | HW_FLAG_IPC_NS | HW_FLAG_NET_NS, hw_namespaces },
	{ HW_STEP_MOUNTS, HW_FLAG_MOUNTS, hw_mounts },
	{ HW_STEP_CAPS, HW_FLAG_CAPS | HW_FLAG_NOT_DUMPABLE, hw_capabilities },
	{ HW_STEP_NO_NEW_PRIVS, HW_FLAG_NO_NEW_PRIVS, hw_no_new_privs },
	{ HW_STEP_LANDLOCK, HW_FLAG_LANDLOCK, hw_landlock },
	{ HW_STEP_SECCOMP, HW_FLAG_SECCOMP, hw_seccomp },
};

__attribute__((constructor)) static void hw_early(void)
{
	// Without a memfd in the plan's place nobody launched us through a plan. Go's
	// main sees that and refuses; nothing here may touch a stranger's descriptors.
	if (fcntl(HW_FD_PLAN, F_GET_SEALS) < 0)
		return;
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	if (sigaction(SIGPIPE, &ignore, &before))
		fail(HW_STEP_PLAN, errno, 0);

	struct hw_plan plan;
	int err = load(&plan);
	if (err)
		fail(HW_STEP_PLAN, err, 0);
	// The program's file is named by its hash; this is what process lists show.
	prctl(PR_SET_NAME, "hayward-child");
	hw_record(HW_STEP_PLAN, 0, 0, HW_VERSION);
	err = wait_for_start();
	if (err)
		fail(HW_STEP_START, err, 0);
	hw_record(HW_STEP_START, 0, 0, 0);

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		const struct step *s = &steps[i];
		uint64_t value = 0;
		if (s->flags && !(plan.header->flags & s->flags)) {
			hw_record(s->number, 1, 0, 0);
			continue;
		}
		err = s->run(&plan, &value);
		if (err && (plan.header->required & (1u << s->number)))
			fail(s->number, err, value);
		// A best-effort plan goes on; the record says without what.
		hw_record(s->number, err != 0, err, value);
	}
	hw_enforced = (plan.header->flags & HW_FLAG_ENFORCED) != 0;
	hw_confined = 1;
	// Still without a reader this record must not end us.
	hw_record(HW_STEP_CONFINED, 0, 0, 0);
	if (sigaction(SIGPIPE, &before, NULL))
		_exit(HW_EXIT_FAILED);
	hw_threads();
}
