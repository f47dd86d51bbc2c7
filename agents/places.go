package agents

import (
	"path/filepath"

	"github.com/hayward-dev/hayward/internal/trust"
)

// PlacesOf says where the definitions of a working directory are. The root
// directory and a home are no projects. config and home may be empty. With an
// error nothing of the project is trusted.
func PlacesOf(dir, config, home string, trusted trust.List) (Places, error) {
	p := Places{Config: config, Home: home}
	canonical, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return p, err
	}
	top, err := trust.ProjectOf(canonical)
	if err != nil {
		return p, err
	}
	if own, err := filepath.EvalSymlinks(home); top == "/" || err == nil && top == own {
		return p, nil
	}
	p.Dir, p.Project = canonical, top
	p.Trusted, err = trusted.Trusts(top)
	return p, err
}
