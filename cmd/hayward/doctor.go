package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/paths"
	"github.com/hayward-dev/hayward/sandbox"
)

// verdict is what doctor says of one thing.
type verdict string

// The verdicts. Only missing makes doctor fail.
const (
	verdictOK      verdict = "ok"
	verdictLess    verdict = "less"    // it can be done without
	verdictMissing verdict = "missing" // needed, and cannot be had
	verdictFact    verdict = "fact"
)

// finding is one line of doctor.
type finding struct {
	Name    string  `json:"name"`
	Verdict verdict `json:"verdict"`
	Detail  string  `json:"detail"`
	Remedy  string  `json:"remedy,omitempty"`
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	OK       bool      `json:"ok"`
	Findings []finding `json:"findings"`
	// TreeKill is how whole process trees would be ended.
	TreeKill events.TreeKill `json:"tree_kill"`
	// Daemon is the daemon that runs, or null.
	Daemon *events.StatusReply `json:"daemon"`
}

func (d *diagnosis) add(name string, v verdict, remedy, format string, args ...any) {
	d.Findings = append(d.Findings, finding{Name: name, Verdict: v, Detail: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Tell what works here and what does not",
		Long: `Tell what this system can enforce, where things are kept, and how the daemon is.
No daemon is started.

The exit code is 1 when something that is needed is missing.`,
		Example: "  hayward doctor\n  hayward doctor --json | jq '.findings[] | select(.verdict == \"missing\")'",
		Args:    cobra.NoArgs,
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			d, err := a.diagnose(ctx)
			if err != nil {
				return err
			}
			if err := a.showDiagnosis(d); err != nil {
				return err
			}
			if !d.OK {
				return status(exitSubagent)
			}
			return nil
		}),
	}
}

func (a *app) diagnose(ctx context.Context) (*diagnosis, error) {
	p, err := a.paths()
	if err != nil {
		return nil, err
	}
	d := &diagnosis{Findings: []finding{}}
	d.add("version", verdictFact, "", "%s", versionLine())
	d.add("kernel", verdictFact, "", "%s", kernel())
	d.support(sandbox.Probe())
	d.sandboxes(sandbox.Probe(), p)
	d.cgroups()
	d.directories(p)
	a.examineConfig(d)
	a.examineDaemon(ctx, d, p)
	d.OK = !slices.ContainsFunc(d.Findings, func(f finding) bool { return f.Verdict == verdictMissing })
	return d, nil
}

// support tells what the kernel can enforce, then whether that is enough: by
// compiling the default profile as a spawn would.
func (d *diagnosis) support(s sandbox.Support) {
	judge := func(ok bool) verdict {
		if ok {
			return verdictOK
		}
		return verdictLess // whether it is needed, the profile below decides
	}
	d.add("user", verdictFact, "", "uid %d", os.Geteuid())
	d.add("constructor", judge(s.Constructor), "", "%s", have(s.Constructor, "in this build", "this build cannot enforce a sandbox"))
	d.add("landlock", judge(s.LandlockABI > 0 && s.LandlockReason == ""), "", "ABI %d%s", s.LandlockABI, because(s.LandlockReason))
	d.add("seccomp", judge(s.Seccomp), "", "%s", have(s.Seccomp, "filters", "the kernel has no filters"))
	namespaces := s.Namespaces != sandbox.NamespacesNone
	how := map[sandbox.Namespaces]string{
		sandbox.NamespacesDirect: "pid, mount, ipc: by privilege",
		sandbox.NamespacesUser:   "pid, mount, ipc: through a user namespace",
	}[s.Namespaces]
	if !namespaces {
		how = "none" + because(s.NamespacesReason)
	}
	d.add("namespaces", judge(namespaces), "", "%s", how)
	_, userErr := os.Stat("/proc/self/ns/user")
	d.add("user namespace", judge(userErr == nil), "", "%s", have(userErr == nil, "in the kernel"+userNamespaceLimit(), "the kernel has none"))
	_, netErr := os.Stat("/proc/self/ns/net")
	network := namespaces && netErr == nil
	d.add("network namespace", judge(network), "", "%s", have(network, "can be made", "cannot be made: a child's network cannot be closed by it"))
	d.add("mount trees", judge(s.MountTrees), "", "%s", have(s.MountTrees, "mount_setattr", "the kernel has no mount_setattr"))
	d.add("process limit", judge(s.PIDMax || namespaces), "", "%s", have(s.PIDMax, "pid_max of each PID namespace", "pids controller or RLIMIT_NPROC"))

	d.TreeKill = events.TreeKillPIDNamespace
	if !namespaces {
		d.TreeKill = events.TreeKillSweep
		if cgroupKill() == "" {
			d.TreeKill = events.TreeKillCgroup
		}
	}
	d.add("tree kill", judge(d.TreeKill != events.TreeKillSweep), "", "%s", d.TreeKill)
	d.profile(s)
}

func have(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// profile says whether the default profile can be enforced.
func (d *diagnosis) profile(s sandbox.Support) {
	const name = "sandbox workspace"
	dir, err := os.MkdirTemp("", "hayward-doctor-")
	if err != nil {
		d.add(name, verdictMissing, "", "it cannot be tried: %v", err)
		return
	}
	defer os.RemoveAll(dir)
	exe, err := os.Executable()
	if err != nil {
		d.add(name, verdictMissing, "", "it cannot be tried: %v", err)
		return
	}
	request := sandbox.Request{
		Profile: "workspace", Workspace: filepath.Join(dir, "work"), Cwd: filepath.Join(dir, "work"),
		TempDir: filepath.Join(dir, "tmp"), ChildBinary: exe,
	}
	for _, sub := range []string{request.Workspace, request.TempDir} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			d.add(name, verdictMissing, "", "it cannot be tried: %v", err)
			return
		}
	}
	plan, refusal := sandbox.Compile(request, s)
	if refusal != nil {
		d.add(name, verdictMissing, refusal.Remedy, "%s", refusal.Message)
		return
	}
	if err := plan.Close(); err != nil {
		d.add(name, verdictLess, "", "it can be enforced, but %v", err)
		return
	}
	d.add(name, verdictOK, "", "can be enforced")
}

// directories tells where things are kept and whether that is safe.
func (d *diagnosis) directories(p paths.Paths) {
	for _, dir := range []struct {
		name, path string
		private    bool
	}{
		{"state directory", p.State, true}, {"runtime directory", p.Runtime, true},
		{"config directory", p.Config, false}, {"cache", p.Cache, false},
	} {
		v, remedy, detail := examineDir(dir.path, dir.private)
		d.add(dir.name, v, remedy, "%s", detail)
	}
}

func examineDir(path string, private bool) (v verdict, remedy, detail string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return verdictOK, "", path + " (made when it is needed)"
	case err != nil:
		return verdictMissing, "make it accessible", err.Error()
	case !info.IsDir():
		return verdictMissing, "move it away", path + " is not a directory"
	}
	mode := info.Mode().Perm()
	detail = fmt.Sprintf("%s mode %04o", path, mode)
	if !private {
		return verdictOK, "", detail
	}
	if err := writable(path); err != nil {
		return verdictMissing, "make it writable, or name another one with HAYWARD_STATE_DIR and HAYWARD_RUNTIME_DIR", fmt.Sprintf("%s: %v", detail, err)
	}
	if mode&0o022 != 0 {
		return verdictMissing, "chmod 700 " + path, detail + ": others may write it"
	}
	if mode&0o077 != 0 {
		return verdictLess, "chmod 700 " + path, detail + ": others may look into it"
	}
	return verdictOK, "", detail
}

// examineDaemon tells how the daemon is, if one runs.
func (a *app) examineDaemon(ctx context.Context, d *diagnosis, p paths.Paths) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := a.connectIfRunning(ctx)
	if events.HasCode(err, events.CodeUnreachable) {
		if locked(p.Lock()) {
			d.add("daemon", verdictMissing, "see "+p.Log()+", or end it", "one holds %s and does not listen on %s", p.State, p.ClientSocket())
			return
		}
		d.add("daemon", verdictOK, "", "none runs; one starts when it is needed")
		a.configuredLimits(d)
		return
	}
	if err != nil {
		d.add("daemon", verdictMissing, "end it with hayward shutdown or by its pid", "%s", err.Error())
		return
	}
	reply, err := c.Status(ctx)
	if err = c.done(err); err != nil {
		d.add("daemon", verdictMissing, "see "+p.Log(), "it does not answer: %s", err.Error())
		return
	}
	d.Daemon = &reply
	d.add("daemon", verdictOK, "", "pid %d, up %s, %d queued, %d starting, %d running, %d finished, %d unread",
		reply.PID, shownDuration(reply.UptimeMS), reply.Queued, reply.Pending, reply.Active, reply.Completed, reply.Unread)
	if reply.Version != buildVersion() {
		d.add("daemon version", verdictLess, "hayward shutdown --handover", "%s, this program is %s", reply.Version, buildVersion())
	}
	a.limitsInForce(d, reply)
	if len(reply.Recovered) > 0 {
		d.add("recovered", verdictFact, "", "%s", strings.Join(reply.Recovered, " "))
	}
	if len(reply.Damaged) > 0 {
		d.add("damaged", verdictLess, "look at their run directories in "+p.Subagents(), "%s", strings.Join(reply.Damaged, " "))
	}
	if reply.DroppedMessages > 0 {
		d.add("dropped messages", verdictLess, "", "%d", reply.DroppedMessages)
	}
}

func (a *app) showDiagnosis(d *diagnosis) error {
	if a.json {
		return a.printJSON(d)
	}
	var b strings.Builder
	for _, f := range d.Findings {
		mark := map[verdict]string{verdictOK: "ok", verdictLess: "less", verdictMissing: "MISSING", verdictFact: ""}[f.Verdict]
		fmt.Fprintf(&b, "%-8s %-18s %s\n", mark, f.Name, oneLine(f.Detail))
		if f.Remedy != "" {
			fmt.Fprintf(&b, "%-8s %-18s remedy: %s\n", "", "", oneLine(f.Remedy))
		}
	}
	return a.write([]byte(b.String()))
}
