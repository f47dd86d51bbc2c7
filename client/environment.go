package client

import "strings"

// baseVariables are what a spawn takes over of its client's environment. Names
// of credentials are not among them.
var baseVariables = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true,
	"LANG": true, "TERM": true, "COLORTERM": true, "TZ": true, "NO_COLOR": true,
}

// BaseEnvironment returns the allow-listed part of environ ("K=V" each): PATH,
// HOME, USER, LOGNAME, SHELL, LANG, LC_*, TERM, COLORTERM, TZ and NO_COLOR. The
// last of repeated names wins.
func BaseEnvironment(environ []string) map[string]string {
	base := make(map[string]string)
	for _, kv := range environ {
		k, v, ok := strings.Cut(kv, "=")
		if ok && (baseVariables[k] || strings.HasPrefix(k, "LC_")) {
			base[k] = v
		}
	}
	return base
}
