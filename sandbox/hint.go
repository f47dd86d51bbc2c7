package sandbox

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hayward-dev/hayward/events"
)

// refusalWords are what programs print of EACCES, EPERM and EROFS.
var refusalWords = []string{"permission denied", "operation not permitted", "read-only file system", "eacces", "eperm", "erofs"}

// pathWord finds absolute paths in what programs print; the end of a relative one
// is none.
var pathWord = regexp.MustCompile(`(?:^|[\s'"` + "`" + `:;,=()\[\]<>‘’“”])(/[^\s'"` + "`" + `:;,()\[\]<>‘’“”]*)`)

// networkWords are what programs print of a network that is closed.
var networkWords = []string{"network is unreachable", "could not resolve", "temporary failure in name resolution", "socket", "connect", "dial "}

// Hint looks in the end of a failed command's stderr for a refusal that the
// sandbox explains. It returns nil where there is none.
func Hint(report *events.SandboxReport, stderr string) *events.SandboxHint {
	if report == nil || !report.Active {
		return nil
	}
	for line := range strings.Lines(stderr) {
		folded := strings.ToLower(line)
		if !containsAny(folded, refusalWords) {
			if report.Network == events.NetworkOpen || !containsAny(folded, networkWords[:3]) {
				continue
			}
			return networkHint(report)
		}
		for _, match := range pathWord.FindAllStringSubmatch(line, -1) {
			if hint := pathHint(report, filepath.Clean(match[1])); hint != nil {
				return hint
			}
		}
		if report.Network != events.NetworkOpen && containsAny(folded, networkWords) {
			return networkHint(report)
		}
	}
	return nil
}

// HintPath explains a refusal of path, nil where the sandbox does not.
func HintPath(report *events.SandboxReport, path string) *events.SandboxHint {
	if report == nil || !report.Active || !filepath.IsAbs(path) {
		return nil
	}
	return pathHint(report, filepath.Clean(path))
}

func containsAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func pathHint(report *events.SandboxReport, path string) *events.SandboxHint {
	hint := &events.SandboxHint{Path: path, Profile: report.Profile}
	switch {
	case path == "/" || len(path) > 4096:
		return nil
	case withinAny(path, report.Denied):
		hint.Operation, hint.Remedy = "read", "the profile denies it; allow it in a profile of your own (allow_credentials, or a shorter deny)"
	case withinAny(path, report.Closed):
		hint.Operation, hint.Remedy = "write", "it is kept from being written; allow it in a profile of your own (allow_write)"
	case withinAny(path, report.Writable):
		return nil
	case len(report.Readable) > 0 && !withinAny(path, report.Readable):
		hint.Operation, hint.Remedy = "read", addDir(path)+"read_only in a profile of your own, or --sandbox workspace"
	default:
		hint.Operation, hint.Remedy = "write", addDir(path)+"read_write in a profile of your own"
	}
	return hint
}

// addDir advises to open the directory of a path, unless that is everything.
func addDir(path string) string {
	if dir := filepath.Dir(path); dir != "/" {
		return "--add-dir " + dir + ", or "
	}
	return ""
}

func withinAny(path string, dirs []string) bool {
	for _, d := range dirs {
		if within(path, d) {
			return true
		}
	}
	return false
}

func networkHint(report *events.SandboxReport) *events.SandboxHint {
	return &events.SandboxHint{
		Operation: "network", Profile: report.Profile,
		Remedy: "--sandbox workspace, or restrict_network = false in a profile of your own",
	}
}
