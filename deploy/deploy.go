// Package deploy holds the files with which Hayward is installed as a service,
// so that the program writes what the repository shows.
package deploy

import (
	_ "embed"
	"strings"
)

// The units as they are in the repository, of a user and of the system.
var (
	//go:embed hayward.service
	userUnit string
	//go:embed hayward-system.service
	systemUnit string
)

// placeholder is where the units have the path of the program.
const placeholder = "ExecStart=/usr/local/bin/hayward "

// UserUnit is the unit of a user's own daemon that runs program.
func UserUnit(program string) string { return unit(userUnit, program) }

// SystemUnit is the unit of the system's daemon that runs program.
func SystemUnit(program string) string { return unit(systemUnit, program) }

func unit(text, program string) string {
	return strings.Replace(text, placeholder, "ExecStart="+quoted(program)+" ", 1)
}

// quoted is a path as systemd reads it in a command line: % begins a specifier and
// $ a variable, also within quotation marks.
func quoted(path string) string {
	path = strings.NewReplacer(`%`, `%%`, `$`, `$$`).Replace(path)
	if !strings.ContainsAny(path, " \t\"'\\;") {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
