package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hayward-dev/hayward/deploy"
	"github.com/hayward-dev/hayward/events"
)

// place is where a unit goes, with its text.
type place struct {
	file, text string
	system     bool
}

// systemUnits is where the administrator's units are; tests have one of their own.
var systemUnits = "/etc/systemd/system"

func (a *app) servicePlace(f serviceFlags) (place, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return place{}, fmt.Errorf("find this program: %w", err)
	}
	if f.system || (!f.user && os.Geteuid() == 0) {
		return place{file: filepath.Join(systemUnits, "hayward.service"), text: signed(deploy.SystemUnit(program)), system: true}, nil
	}
	base := a.getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		home := a.getenv("HOME")
		if !filepath.IsAbs(home) {
			return place{}, usage("HOME is not set, so there is no place for the unit of a user")
		}
		base = filepath.Join(home, ".config")
	}
	return place{file: filepath.Join(base, "systemd", "user", "hayward.service"), text: signed(deploy.UserUnit(program))}, nil
}

// signature is before the sum of the rest of a file of ours: one whose sum is
// right was written by some version of this program and changed by nobody.
const signature = "# Written by hayward service install. SHA-256 of what follows: "

func signed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return signature + hex.EncodeToString(sum[:]) + "\n" + text
}

// look says how the unit file is.
func (p place) look() (string, error) {
	b, err := os.ReadFile(p.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "absent", nil
	case err != nil:
		return "", fmt.Errorf("read the unit: %w", err)
	case string(b) == p.text:
		return "installed", nil
	}
	if head, text, ok := strings.Cut(string(b), "\n"); ok && strings.HasPrefix(head, signature) && signed(text) == string(b) {
		return "outdated", nil
	}
	return "changed", nil
}

// mine refuses a file that somebody changed.
func (p place) mine(state string, f serviceFlags) error {
	if state != "changed" || f.force {
		return nil
	}
	return events.Errorf(events.CodeForbidden, events.LayerPermission, "%s was changed, or was not written by this program", p.file).
		WithRemedy("look at it; --force takes it all the same")
}

func (p place) systemctl(arguments string) string {
	if p.system {
		return "systemctl " + arguments
	}
	return "systemctl --user " + arguments
}

func (p place) status(serviceFlags) (serviceState, error) {
	state, err := p.look()
	s := serviceState{Unit: p.file, State: state}
	switch state {
	case "installed", "changed":
		s.Next = []string{p.systemctl("status hayward")}
	default:
		s.Next = []string{"hayward service install" + map[bool]string{true: " --system"}[p.system]}
	}
	return s, err
}

func (p place) install(f serviceFlags) (serviceState, error) {
	state, err := p.look()
	if err == nil {
		err = p.mine(state, f)
	}
	s := serviceState{Unit: p.file, State: state, Done: "written", DryRun: f.dryRun}
	if err != nil {
		return s, err
	}
	if p.system {
		s.Next = append(s.Next, "useradd --system --home-dir /var/lib/hayward --shell /usr/sbin/nologin hayward")
	}
	s.Next = append(s.Next, p.systemctl("daemon-reload"), p.systemctl("enable --now hayward"))
	if !p.system {
		s.Next = append(s.Next, "loginctl enable-linger    # to keep it when you are not logged in")
	}
	if state == "installed" {
		s.Done = ""
		return s, nil
	}
	if f.dryRun {
		return s, nil
	}
	if err := replaceFile(p.file, p.text); err != nil {
		return s, fmt.Errorf("write the unit: %w", err)
	}
	s.State = "installed"
	return s, nil
}

// replaceFile writes a file as a whole or not at all.
func replaceFile(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".hayward-*")
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

func (p place) uninstall(f serviceFlags) (serviceState, error) {
	state, err := p.look()
	if err == nil {
		err = p.mine(state, f)
	}
	s := serviceState{Unit: p.file, State: state, DryRun: f.dryRun}
	if err != nil || state == "absent" {
		return s, err
	}
	s.Done = "removed"
	s.Next = []string{p.systemctl("stop hayward") + "    # if it runs", p.systemctl("daemon-reload")}
	if f.dryRun {
		return s, nil
	}
	// "systemctl disable" needs the file, so its link is taken away here.
	target := map[bool]string{true: "multi-user.target.wants", false: "default.target.wants"}[p.system]
	link := filepath.Join(filepath.Dir(p.file), target, filepath.Base(p.file))
	if st, err := os.Lstat(link); err == nil && st.Mode().Type() == fs.ModeSymlink {
		if err := os.Remove(link); err != nil {
			return s, fmt.Errorf("disable the unit: %w", err)
		}
	}
	if err := os.Remove(p.file); err != nil {
		return s, fmt.Errorf("remove the unit: %w", err)
	}
	s.State = "absent"
	return s, nil
}
