package worktree

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// setting is one value of the user's configuration.
type setting struct{ key, value string }

// userSettings is the configuration of the user's repository, all scopes, in the
// order in which git reads them: the last value of a key counts.
type userSettings struct {
	home string
	all  []setting
}

// readSettings asks git for the configuration of a repository as the user with
// that home directory sees it.
func readSettings(ctx context.Context, gitDir, home, id string) (userSettings, *events.Error) {
	g := Git{Dir: gitDir, ID: id, Home: home}
	out, err := g.Output(ctx, "config", "--list", "-z", "--includes", "--show-scope")
	if err != nil {
		return userSettings{}, err
	}
	s := userSettings{home: home}
	list := fields(out)
	for i := 0; i+1 < len(list); i += 2 {
		if list[i] == "command" {
			continue // our own
		}
		key, value, ok := strings.Cut(list[i+1], "\n")
		if !ok {
			value = "true" // a key without a value
		}
		s.all = append(s.all, setting{key, value})
	}
	return s, nil
}

// last returns the value that counts, and whether there is one.
func (s userSettings) last(key string) (string, bool) {
	for i := len(s.all) - 1; i >= 0; i-- {
		if s.all[i].key == key {
			return s.all[i].value, true
		}
	}
	return "", false
}

// isTrue reports whether a setting is on.
func (s userSettings) isTrue(key string) bool {
	v, _ := s.last(key)
	switch strings.ToLower(v) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// path is the value of a setting that names a file, empty if there is none.
func (s userSettings) path(key string) string {
	v, _ := s.last(key)
	if rest, ok := strings.CutPrefix(v, "~/"); ok {
		v = filepath.Join(s.home, rest)
	}
	if !filepath.IsAbs(v) {
		return ""
	}
	return v
}

// excludes returns the patterns of the user's own ignore file and those of the
// repository, which count more, as one file.
func (s userSettings) excludes(commonDir string) string {
	own := s.path("core.excludesfile")
	if own == "" {
		own = filepath.Join(s.home, ".config/git/ignore")
	}
	return readSmall(own) + readSmall(filepath.Join(commonDir, "info/exclude"))
}

// maxPatterns bounds a file of patterns.
const maxPatterns = 1 << 20

// readSmall returns what is in a file of the user's, with a line end; what cannot
// be read counts as absent, as for git.
func readSmall(path string) string {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxPatterns {
		return ""
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n") + "\n"
}

// conversion is what git may do to a file's bytes before it keeps them.
type conversion int

const (
	convertsNothing conversion = iota
	// convertsLineEnds: only files with a carriage return are kept otherwise.
	convertsLineEnds
	convertsAnything
)

// conversion says what git may keep otherwise than it is in a file: there what the
// index says of a file says nothing of its bytes. Filters are refused before.
func (s userSettings) conversion(attributes string) conversion {
	c := convertsNothing
	if v, _ := s.last("core.autocrlf"); v != "" && !strings.EqualFold(v, "false") {
		c = convertsLineEnds
	}
	for _, word := range strings.FieldsFunc(attributes, func(r rune) bool { return strings.ContainsRune(" \t\n\r=", r) }) {
		switch strings.TrimLeft(word, "-!") {
		case "text", "eol", "crlf":
			c = max(c, convertsLineEnds)
		case "ident", "working-tree-encoding":
			return convertsAnything
		}
	}
	return c
}

// carried are the settings that the git directory of a subagent gets: who commits,
// how bytes are kept, where the remotes are. Nothing that names a program, and no
// credential.
func (s userSettings) carried() []setting {
	single := map[string]string{}
	var many []setting
	for _, v := range s.all {
		switch section, rest, _ := strings.Cut(v.key, "."); section {
		case "user":
			if rest == "name" || rest == "email" {
				single[v.key] = v.value
			}
		case "core":
			switch rest {
			case "autocrlf", "eol", "safecrlf", "filemode", "ignorecase", "symlinks", "precomposeunicode", "quotepath":
				single[v.key] = v.value
			}
		case "branch":
			if strings.HasSuffix(rest, ".remote") || strings.HasSuffix(rest, ".merge") || strings.HasSuffix(rest, ".rebase") {
				single[v.key] = v.value
			}
		case "remote":
			switch rest[strings.LastIndexByte(rest, '.')+1:] {
			case "url", "pushurl":
				many = append(many, setting{v.key, withoutCredentials(v.value)})
			case "fetch", "tagopt":
				many = append(many, v)
			}
		case "merge", "diff", "pull", "rebase", "init":
			switch v.key {
			case "merge.conflictstyle", "diff.renames", "pull.rebase", "pull.ff", "rebase.autosquash", "init.defaultbranch":
				single[v.key] = v.value
			}
		}
	}
	out := make([]setting, 0, len(single)+len(many))
	for key, value := range single {
		out = append(out, setting{key, value})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].key < out[j].key })
	return append(out, many...)
}

// withoutCredentials is a remote's address without user and password, which over
// http are how tokens are written. Over ssh the user is part of the address.
func withoutCredentials(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	switch _, secret := u.User.Password(); {
	case u.User == nil:
		return address
	case strings.HasSuffix(u.Scheme, "ssh") && !secret:
		return address
	case strings.HasSuffix(u.Scheme, "ssh"):
		u.User = url.User(u.User.Username())
	default:
		u.User = nil
	}
	return u.String()
}

// formatSettings writes a git configuration file.
func formatSettings(list []setting) string {
	var b strings.Builder
	for _, s := range list {
		first, last := strings.IndexByte(s.key, '.'), strings.LastIndexByte(s.key, '.')
		if first < 0 {
			continue
		}
		if first == last {
			b.WriteString("[" + s.key[:first] + "]\n")
		} else {
			b.WriteString("[" + s.key[:first] + ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.key[first+1:last]) + "\"]\n")
		}
		b.WriteString("\t" + s.key[last+1:] + ` = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s.value) + "\"\n")
	}
	return b.String()
}
