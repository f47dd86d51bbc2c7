package deadlines

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const page = "../../docs/reliability.md"

// The documentation has the deadlines as they are.
func TestDocumentedDeadlines(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, d := range All {
		require.Contains(t, string(text), fmt.Sprintf("| `--%s` | %s | %s | %s |", d.Name, d.Default, d.Bounds, d.At))
	}
}

// Every test that the page names exists.
func TestNamedTestsExist(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	missing := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(string(text), -1) {
		missing[name] = true
	}
	require.NotEmpty(t, missing)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(code, -1) {
			delete(missing, string(m[1]))
		}
		return err
	}))
	require.Empty(t, missing)
}
