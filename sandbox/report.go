package sandbox

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/internal/handoff"
	"github.com/hayward-dev/hayward/sandbox/internal/layout"
)

// layerSteps are the steps that are layers of a report.
var layerSteps = []handoff.Step{
	handoff.StepFDs, handoff.StepNamespaces, handoff.StepMounts, handoff.StepCaps,
	handoff.StepNoNewPrivs, handoff.StepLandlock, handoff.StepSeccomp,
}

// Report judges the records of one child up to [handoff.StepConfined]; later
// ones are ignored. The error names the first step that failed or, where none
// did, that was not reported; it is nil only if every required step was applied
// and the constructor was done. The report is as complete as the records in
// either case. A record of a best-effort plan that is skipped with an errno is
// no failure: it becomes a gap.
func (p *Plan) Report(records []handoff.Record) (events.SandboxReport, *events.Error) {
	report := events.SandboxReport{
		Requested: p.requested,
		Profile:   p.profile.Name(),
		Layers:    make(map[string]events.Layer, len(layerSteps)),
		Network:   p.Network,
		TreeKill:  events.TreeKillSweep,
		Writable:  slices.Clone(p.Writable),
		Gaps:      slices.Clone(p.gaps),
		PlanHash:  p.Hash,
	}
	if p.profile.Custom() != nil {
		report.Base = p.profile.Base()
	}
	report.Within = p.within
	p.reportPaths(&report)
	if report.Requested == "" {
		report.Requested = report.Profile
	}
	var failed *events.Error
	done := false
	for _, rec := range records {
		if rec.Step > handoff.StepConfined {
			continue
		}
		done = done || rec.Step == handoff.StepConfined && rec.Errno == 0
		if rec.Errno != 0 && rec.Skipped == 0 && failed == nil {
			failed = p.stepError(rec)
		}
		if slices.Contains(layerSteps, rec.Step) {
			p.layer(&report, rec)
		}
	}
	if failed == nil {
		for _, step := range append([]handoff.Step{handoff.StepPlan, handoff.StepStart}, layerSteps...) {
			if !p.required(step) || slices.ContainsFunc(records, func(r handoff.Record) bool {
				return r.Step == step && r.Errno == 0 && r.Skipped == 0
			}) {
				continue
			}
			failed = missingStep(step)
			break
		}
	}
	if failed == nil && !done {
		failed = missingStep(handoff.StepConfined)
	}
	if report.Layers[handoff.StepNamespaces.String()].State == events.LayerEnforced &&
		p.body.Flags&layout.FlagPIDNS != 0 {
		report.TreeKill = events.TreeKillPIDNamespace
	}
	report.Active = failed == nil && p.profile.Enforced()
	for _, step := range layerSteps {
		report.Active = report.Active && report.Layers[step.String()].State == events.LayerEnforced
	}
	return report, failed
}

// reportPaths enters what the plan opens and closes.
func (p *Plan) reportPaths(report *events.SandboxReport) {
	if p.paths == nil {
		return
	}
	cut := func(list []string) []string { return slices.Clone(list[:min(len(list), events.MaxReportPaths)]) }
	if !p.paths.caps.DefaultRead {
		report.Readable = cut(treePaths(p.paths.readable))
	}
	report.Writable = cut(report.Writable)
	denied := treePaths(p.paths.denied)
	report.Denied, report.DeniedCount = cut(denied), len(denied)
	report.Closed = cut(p.paths.closed)
	report.Missing = cut(p.paths.missing)
	report.Narrowed = cut(p.paths.narrowed)
	report.Absent = p.paths.absent
	if p.body.Flags&layout.FlagLandlock != 0 {
		report.LandlockABI = int(p.body.LandlockABI)
	}
}

func treePaths(trees []tree) []string {
	var out []string
	for _, t := range trees {
		out = append(out, t.path)
	}
	return out
}

// Required is the report of a child whose records are lost but which is known to
// have run: its constructor applied every required step, or it would not have.
// Of what a best-effort plan only tries nothing is known, so it is not active.
func (p *Plan) Required() events.SandboxReport {
	records := []handoff.Record{{Step: handoff.StepPlan}, {Step: handoff.StepStart}}
	for _, step := range layerSteps {
		if p.required(step) {
			records = append(records, handoff.Record{Step: step})
		} else if !p.profile.Enforced() {
			records = append(records, handoff.Record{Step: step, Skipped: 1})
		}
	}
	report, _ := p.Report(append(records, handoff.Record{Step: handoff.StepConfined}))
	for name, layer := range report.Layers {
		layer.Detail = "" // it would count from the records
		report.Layers[name] = layer
	}
	return report
}

func bits(steps ...handoff.Step) uint32 {
	var out uint32
	for _, s := range steps {
		out |= 1 << s
	}
	return out
}

func (p *Plan) required(s handoff.Step) bool {
	return s == handoff.StepPlan || s == handoff.StepStart || p.body.Required&(1<<s) != 0
}

// layer enters one record into the report.
func (p *Plan) layer(report *events.SandboxReport, rec handoff.Record) {
	name := rec.Step.String()
	switch {
	case rec.Errno != 0:
		report.Layers[name] = events.Layer{State: events.LayerUnavailable, Detail: p.describe(rec)}
		if rec.Skipped != 0 && !slices.Contains(report.Gaps, stepGaps[rec.Step]) {
			report.Gaps = append(report.Gaps, stepGaps[rec.Step])
		}
	case report.Layers[name].State == events.LayerUnavailable:
		// A part of the step failed before; the rest of it does not make it whole.
	case rec.Skipped != 0 && p.profile.Enforced():
		report.Layers[name] = events.Layer{State: events.LayerUnavailable, Detail: "this system does not have it"}
	case rec.Skipped != 0:
		report.Layers[name] = events.Layer{State: events.LayerNotRequested, Detail: "Sandbox disabled"}
	default:
		report.Layers[name] = events.Layer{State: events.LayerEnforced, Detail: p.detail(rec)}
	}
}

// stepGaps name what is not covered when a best-effort plan went on without a step.
var stepGaps = map[handoff.Step]string{
	handoff.StepNamespaces: GapNamespaces,
	handoff.StepMounts:     GapMounts,
	handoff.StepCaps:       GapCapabilities,
	handoff.StepNoNewPrivs: GapNoNewPrivs,
	handoff.StepLandlock:   GapLandlock,
	handoff.StepSeccomp:    GapSeccomp,
}

// detail describes an applied layer.
func (p *Plan) detail(rec handoff.Record) string {
	switch rec.Step {
	case handoff.StepNamespaces:
		names := "pid, mount, ipc"
		if p.body.Flags&layout.FlagNetNS != 0 {
			names += ", net"
		}
		if p.namespace == NamespacesUser {
			names += ", user"
		}
		return names
	case handoff.StepMounts:
		return fmt.Sprintf("%d operations", rec.Value)
	case handoff.StepLandlock:
		return fmt.Sprintf("ABI %d, %d rules", rec.Value, p.rules)
	case handoff.StepSeccomp:
		return fmt.Sprintf("%d instructions", rec.Value)
	}
	return ""
}

// describe says what failed: the operation, where the record names one, and why.
func (p *Plan) describe(rec handoff.Record) string {
	why := fmt.Sprintf("%v (errno %d)", syscall.Errno(rec.Errno), rec.Errno)
	if rec.Step == handoff.StepMounts && rec.Value < uint64(len(p.body.Ops)) {
		return fmt.Sprintf("%v: %s", p.body.Ops[rec.Value], why)
	}
	return why
}

func (p *Plan) stepError(rec handoff.Record) *events.Error {
	e := events.Errorf(events.CodeSandboxFailed, events.LayerSandbox,
		"the step %v of the sandbox failed: %s", rec.Step, p.describe(rec)).
		WithDetail("step", rec.Step.String()).
		WithDetail("errno", fmt.Sprint(rec.Errno))
	if p.profile.Enforced() {
		return e.WithRemedy("allow it on this system; or --sandbox-best-effort to go on with what can be enforced; or --sandbox off")
	}
	return e
}

func missingStep(s handoff.Step) *events.Error {
	return events.Errorf(events.CodeSandboxFailed, events.LayerSandbox,
		"the child did not report the step %v of the sandbox", s).WithDetail("step", s.String())
}
