// Package sandbox turns a profile into what the kernel enforces on one child.
//
// # Contract
//
// [Compile] resolves a [Request] against what [Probe] found into a [Plan]: a
// binary plan, a Landlock ruleset and a seccomp program, each behind a
// descriptor, and a hash over all of it. Nothing in a plan changes after
// Compile. The parent starts hayward-child with [Plan.SysProcAttr] and the
// descriptors of internal/handoff; the constructor of sandbox/early applies the
// plan there; [Plan.Report] judges the status records that it wrote.
//
// Isolation fails closed. A profile whose layers this system does not have is
// refused with [events.CodeSandboxUnavailable], which names the kernel feature
// and the three ways on. Only a best-effort request goes on without a layer,
// and then the report lists it in its gaps. The report is written from the
// records, never from the request: it is Active only if every layer that the
// profile requires was reported as applied.
//
// This process is never restricted itself: before Landlock ABI 8 a
// multi-threaded Go process cannot be without every thread getting a domain of
// its own.
//
// Compile does file-system I/O: it expands patterns, creates the cache root, and
// makes mount points in the child's own TMPDIR. It does not block on anything
// else. A Plan may start several children, one after the other or at
// once, and is closed by its owner after the last start. All functions are safe
// for concurrent use.
//
// # Layers
//
// In the order in which a child passes them: descriptors and limits; own PID,
// mount and IPC namespaces, a network namespace where the profile closes the
// network (and a user namespace where the parent may not make them otherwise);
// mounts (the whole tree read-only but for the writable roots, the TMPDIRs of
// others covered, what is denied, hidden or a host socket covered, what is
// protected closed and its ancestors pinned, a private /proc); no capability and
// an empty bounding set; no_new_privs; Landlock; seccomp.
//
// What a profile means is [policy]'s: this package gives it to the kernel.
package sandbox
