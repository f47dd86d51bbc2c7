//go:build linux && cgo

package early

/*
#cgo CFLAGS: -std=gnu11 -Wall -Wextra
#include "early.h"
*/
import "C"

import (
	"unsafe"

	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/sandbox/internal/layout"
)

// Confined reports whether the constructor passed every step of a plan in this
// process. Under profile off that means descriptors and start pipe only.
func Confined() bool { return C.hw_confined == 1 }

// PlanEnforced reports whether that plan was one of an enforced profile, that
// is, any but off.
func PlanEnforced() bool { return Confined() && C.hw_enforced == 1 }

// TimerSlack is the timer slack in nanoseconds that a command has to get back: that
// of the threads of this process is another one. 0 where it was not changed.
func TimerSlack() uint64 { return uint64(C.hw_timer_slack) }

// same indexes an array of one element, so a difference does not compile.
var same [1]struct{}

// The numbers of early.h are those of the Go packages.
var (
	_ = same[C.HW_FD_PLAN-handoff.FDPlan]
	_ = same[C.HW_FD_START-handoff.FDStart]
	_ = same[C.HW_FD_STATUS-handoff.FDStatus]
	_ = same[C.HW_FD_RULESET-handoff.FDRuleset]
	_ = same[C.HW_FD_FILTER-handoff.FDFilter]
	_ = same[C.HW_FD_LAST-handoff.FDLast]

	_ = same[C.HW_STEP_PLAN-handoff.StepPlan]
	_ = same[C.HW_STEP_START-handoff.StepStart]
	_ = same[C.HW_STEP_FDS-handoff.StepFDs]
	_ = same[C.HW_STEP_NAMESPACES-handoff.StepNamespaces]
	_ = same[C.HW_STEP_MOUNTS-handoff.StepMounts]
	_ = same[C.HW_STEP_CAPS-handoff.StepCaps]
	_ = same[C.HW_STEP_NO_NEW_PRIVS-handoff.StepNoNewPrivs]
	_ = same[C.HW_STEP_LANDLOCK-handoff.StepLandlock]
	_ = same[C.HW_STEP_SECCOMP-handoff.StepSeccomp]
	_ = same[C.HW_STEP_CONFINED-handoff.StepConfined]

	_ = same[C.HW_FLAG_ENFORCED-layout.FlagEnforced]
	_ = same[C.HW_FLAG_USER_NS-layout.FlagUserNS]
	_ = same[C.HW_FLAG_PID_NS-layout.FlagPIDNS]
	_ = same[C.HW_FLAG_MOUNT_NS-layout.FlagMountNS]
	_ = same[C.HW_FLAG_IPC_NS-layout.FlagIPCNS]
	_ = same[C.HW_FLAG_MOUNTS-layout.FlagMounts]
	_ = same[C.HW_FLAG_CAPS-layout.FlagCaps]
	_ = same[C.HW_FLAG_BOUNDING-layout.FlagBounding]
	_ = same[C.HW_FLAG_NO_NEW_PRIVS-layout.FlagNoNewPrivs]
	_ = same[C.HW_FLAG_LANDLOCK-layout.FlagLandlock]
	_ = same[C.HW_FLAG_SECCOMP-layout.FlagSeccomp]
	_ = same[C.HW_FLAG_NOT_DUMPABLE-layout.FlagNotDumpable]
	_ = same[C.HW_FLAG_SUBREAPER-layout.FlagSubreaper]
	_ = same[C.HW_FLAG_NET_NS-layout.FlagNetNS]
	_ = same[C.HW_FLAG_LOOPBACK-layout.FlagLoopback]
	_ = same[C.HW_FLAG_PROC_READ-layout.FlagProcRead]

	_ = same[C.HW_OP_PRIVATE-layout.OpPrivate]
	_ = same[C.HW_OP_HOLD-layout.OpHold]
	_ = same[C.HW_OP_READ_ONLY-layout.OpReadOnly]
	_ = same[C.HW_OP_PLACE-layout.OpPlace]
	_ = same[C.HW_OP_PIN-layout.OpPin]
	_ = same[C.HW_OP_BIND_FILE-layout.OpBindFile]
	_ = same[C.HW_OP_MASK_DIR-layout.OpMaskDir]
	_ = same[C.HW_OP_MASK_SOCKET-layout.OpMaskSocket]
	_ = same[C.HW_OP_PROC-layout.OpProc]
	_ = same[C.HW_OP_PID_MAX-layout.OpPIDMax]
	_ = same[C.HW_OP_ONLY-layout.OpOnly]
	_ = same[C.HW_OP_CLOSE-layout.OpClose]
	_ = same[C.HW_OP_MASK_FILE-layout.OpMaskFile]

	_ = same[C.HW_VERSION-layout.Version]
	_ = same[C.HW_MAX_SIZE-layout.MaxSize]
	_ = same[C.HW_MAX_OPS-layout.MaxOps]
	_ = same[unsafe.Sizeof(C.struct_hw_header{})-layout.HeaderSize]
	_ = same[unsafe.Sizeof(C.struct_hw_op{})-layout.OpSize]
	_ = same[unsafe.Sizeof(C.struct_hw_record{})-handoff.RecordSize]
)
