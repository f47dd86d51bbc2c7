package events

import (
	"embed"
	"fmt"
)

//go:generate go run ../internal/contractgen -root ..

//go:embed schemas/*.json
var schemaFiles embed.FS

// Schema returns the JSON Schemas (draft 2020-12) of event k's request and
// reply, or nothing for an unknown event. They are generated from this package.
func Schema(k Kind) (request, reply []byte) {
	return schemaFile(string(k) + ".request"), schemaFile(string(k) + ".reply")
}

// ErrorSchema returns the JSON Schema of [Error].
func ErrorSchema() []byte { return schemaFile("error") }

func schemaFile(name string) []byte {
	b, err := schemaFiles.ReadFile(fmt.Sprintf("schemas/%s.json", name))
	if err != nil {
		return nil
	}
	return b
}
