package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hayward-dev/hayward/events"
	"github.com/hayward-dev/hayward/plan"
)

// itemFlags are the flags of run that make a plan of one command and a list.
type itemFlags struct {
	file       string
	null       bool
	name       string
	cwd        string
	workspace  string
	addDirs    []string
	deny       []string
	sandbox    string
	bestEffort bool
	maxRuntime time.Duration
	env        []string
	labels     []string
}

// itemFlagNames are those that need --for-each.
var itemFlagNames = []string{"null", "name", "cwd", "workspace", "add-dir", "deny", "sandbox", "sandbox-best-effort", "max-runtime", "env", "label"}

func (f *itemFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "for-each", "", "run the command behind -- once for each line of `FILE`, or of stdin with -")
	flags.BoolVarP(&f.null, "null", "0", false, "with --for-each: each item ends with a NUL, as find -print0 writes them")
	flags.StringVar(&f.name, "name", "", "with --for-each: name of the plan (default: the command's)")
	flags.StringVar(&f.cwd, "cwd", "", "with --for-each: `DIR` to run in (default: this one)")
	flags.StringVar(&f.workspace, "workspace", "", "with --for-each: `DIR` that each may write (default: the git repository around the cwd, else the cwd)")
	flags.StringArrayVar(&f.addDirs, "add-dir", nil, "with --for-each: further `DIR` that each may write (repeatable)")
	flags.StringArrayVar(&f.deny, "deny", nil, "with --for-each: "+denyUsage)
	flags.StringVar(&f.sandbox, "sandbox", "", "with --for-each: sandbox profile (default $HAYWARD_SANDBOX, else workspace)")
	flags.BoolVar(&f.bestEffort, "sandbox-best-effort", false, "with --for-each: go on with what the kernel can enforce")
	flags.DurationVar(&f.maxRuntime, "max-runtime", 0, "with --for-each: end each after that long")
	flags.StringArrayVar(&f.env, "env", nil, "with --for-each: `K=V` to set, or K to take from here (repeatable)")
	flags.StringArrayVar(&f.labels, "label", nil, "with --for-each: `K=V` to select by (repeatable)")
}

// stray returns a flag that was given and needs --for-each, or "".
func (f *itemFlags) stray(flags *pflag.FlagSet) string {
	for _, name := range itemFlagNames {
		if flags.Changed(name) {
			return name
		}
	}
	return ""
}

// forEach makes the plan of a command and a list.
func (a *app) forEach(cmd *cobra.Command, f itemFlags, command []string) (*plan.Plan, error) {
	if dash := cmd.ArgsLenAtDash(); dash != 0 {
		return nil, events.Errorf(events.CodeMissingCommand, events.LayerGate, "there is no command behind --").
			WithRemedy("as in: ls | hayward run --for-each - -- wc -c {}")
	}
	if f.maxRuntime < 0 {
		return nil, usage("--max-runtime must not be negative")
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, events.Errorf(events.CodeCwdMissing, events.LayerWorkspace, "find the working directory: %w", err)
	}
	each := plan.ForEach{
		Name: f.name, Command: command, Dir: dir, Cwd: f.cwd, Workspace: f.workspace, AddDirs: f.addDirs, Deny: f.deny,
		Sandbox: f.sandbox, BestEffort: f.bestEffort, MaxRuntime: f.maxRuntime,
	}
	if each.Name == "" && len(command) > 0 {
		each.Name = filepath.Base(command[0])
	}
	if each.Env, err = a.explicitEnv(f.env); err != nil {
		return nil, err
	}
	if each.Labels, err = pairs("--label", f.labels); err != nil {
		return nil, err
	}
	from, err := a.readItems(&each, f)
	if err != nil {
		return nil, err
	}
	return each.Resolve(from)
}

// readItems fills in the items and returns where they come from.
func (a *app) readItems(each *plan.ForEach, f itemFlags) (from string, err error) {
	var in io.Reader = a.stdin
	from = "stdin"
	if f.file != "-" {
		from = f.file
		file, err := os.Open(f.file)
		if err != nil {
			var path *fs.PathError
			if errors.As(err, &path) {
				err = path.Err
			}
			return "", usage("--for-each %s: %w", f.file, err)
		}
		defer file.Close()
		in = file
	} else {
		a.sayReading("items, one on each line,")
	}
	if each.Items, err = plan.ReadItems(in, f.null); err != nil {
		return "", usage("--for-each %s: %w", f.file, err)
	}
	if len(each.Items) == 0 {
		return "", usage("--for-each %s: there are no items, so nothing was started", f.file)
	}
	return from, nil
}
