// Package manual writes the manual pages of a command line from the help that
// its commands have. It is apart from the program because what renders them
// costs every start of a program that has it two milliseconds.
package manual

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Write writes one page in section 1 for root and each command below it into
// dir, which is made. The same commands give the same pages.
func Write(root *cobra.Command, version, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the manual pages: %w", err)
	}
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Title: "HAYWARD", Section: "1", Source: "hayward " + version, Manual: "Hayward"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("write the manual pages: %w", err)
	}
	return nil
}
