// Package handoff is the contract between the spawner and the child it forks:
// which descriptor is what, and the records that the child writes while it
// confines itself. The C constructor in sandbox/early repeats the numbers; a
// test holds both against each other.
package handoff

import (
	"encoding/binary"
	"fmt"
)

// The child's descriptors. All of them are open in every child; those that a
// profile does not use are /dev/null. A command gets none of them: its table is
// 0, 1 and 2.
const (
	FDPlan       = 3  // sealed memfd: the binary sandbox plan
	FDStart      = 4  // pipe, read end: one byte lets the child go, end of file ends it
	FDStatus     = 5  // pipe, write end: status records
	FDSpec       = 6  // sealed memfd: events.ChildSpec as JSON
	FDBus        = 7  // O_PATH: the directory of the children's socket
	FDReport     = 8  // report.json, append only
	FDStdout     = 9  // stdout.log, append only
	FDStderr     = 10 // stderr.log, append only
	FDTranscript = 11 // transcript.jsonl, append only
	FDRuleset    = 12 // Landlock ruleset
	FDFilter     = 13 // sealed memfd: the seccomp program
	FDLast       = FDFilter
)

// Step names what a status record speaks of.
type Step uint16

// The steps, in the order in which a child passes them.
const (
	StepPlan       Step = 1  // the plan was read and its layout is known
	StepStart      Step = 2  // the start byte came; nothing ran before it
	StepFDs        Step = 3  // descriptors above FDLast closed, limits set
	StepNamespaces Step = 4  // the namespaces are those of the plan
	StepMounts     Step = 5  // mounts made and verified; value: how many
	StepCaps       Step = 6  // capabilities and the bounding set dropped
	StepNoNewPrivs Step = 7  // no_new_privs set
	StepLandlock   Step = 8  // ruleset enforced; value: ABI
	StepSeccomp    Step = 9  // filter loaded; value: instructions
	StepConfined   Step = 10 // the constructor is done
	StepMain       Step = 11 // the supervisor's Go code runs and saw StepConfined's flag
	StepRunner     Step = 12 // the runner was started; value: its pid inside
	StepRefused    Step = 13 // the supervisor could not start the runner; report.json says why
)

var stepNames = map[Step]string{
	StepPlan: "plan", StepStart: "start", StepFDs: "fds", StepNamespaces: "namespaces",
	StepMounts: "mounts", StepCaps: "caps", StepNoNewPrivs: "no_new_privs",
	StepLandlock: "landlock", StepSeccomp: "seccomp", StepConfined: "confined",
	StepMain: "main", StepRunner: "runner", StepRefused: "refused",
}

// String returns the step's name, which is also the name of its sandbox layer.
func (s Step) String() string {
	if n, ok := stepNames[s]; ok {
		return n
	}
	return fmt.Sprintf("step(%d)", uint16(s))
}

// Record is one status record: 16 bytes, little endian, written in one write.
type Record struct {
	Step Step
	// Skipped is 1 when the plan did not ask for the step or, with an Errno, when
	// a best-effort plan went on without it. The end of a step is its last record.
	Skipped uint16
	// Errno is 0 or why the step failed; Value is then the index of the plan's
	// operation that failed (mounts).
	Errno int32
	Value uint64
}

// RecordSize is the size of an encoded Record.
const RecordSize = 16

// Encode returns the wire form of r.
func (r Record) Encode() [RecordSize]byte {
	var b [RecordSize]byte
	binary.LittleEndian.PutUint16(b[0:], uint16(r.Step))
	binary.LittleEndian.PutUint16(b[2:], r.Skipped)
	binary.LittleEndian.PutUint32(b[4:], uint32(r.Errno))
	binary.LittleEndian.PutUint64(b[8:], r.Value)
	return b
}

// Decode reads one record; b has RecordSize bytes.
func Decode(b []byte) Record {
	return Record{
		Step:    Step(binary.LittleEndian.Uint16(b[0:])),
		Skipped: binary.LittleEndian.Uint16(b[2:]),
		Errno:   int32(binary.LittleEndian.Uint32(b[4:])),
		Value:   binary.LittleEndian.Uint64(b[8:]),
	}
}
