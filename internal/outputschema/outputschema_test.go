package outputschema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/events"
)

func TestCompileRefuses(t *testing.T) {
	for name, c := range map[string]struct{ schema, says string }{
		"no schema":          {`{"type": 7}`, "no JSON Schema"},
		"type word":          {`{"properties": {"a": {"type": "strin"}}}`, `#/properties/a/type: "strin" is no type`},
		"type words":         {`{"type": ["object", "nil"]}`, `#/type: "nil" is no type`},
		"two members":        {`{"properties": {"a": {"pattern": "x"}}, "properties": {}}`, "no JSON"},
		"two values":         {`{} {}`, "something follows"},
		"other letters":      {`{"items": {"$REF": "#"}}`, `"$REF" is no keyword`},
		"folded letters":     {`{"propertie\u017f": {}}`, "is no keyword"},
		"bad pattern":        {`{"pattern": "("}`, "can be used"},
		"bad name pattern":   {`{"patternProperties": {"(": true}}`, "can be used"},
		"large pattern":      {`{"pattern": "[a-f0-9_]{1000}[a-f0-9_]{1000}[a-f0-9_]{1000}(é|x){500}"}`, "too large together"},
		"large name pattern": {`{"patternProperties": {"` + strings.Repeat("x{1000}", 30) + `": true}}`, "too large together"},
		"many patterns":      {`{"allOf": [` + strings.Repeat(`{"pattern": "x{1000}"},`, 30) + `true]}`, "too large together"},
		"open repetition":    {`{"pattern": "` + strings.Repeat("(x{900,})", 30) + `"}`, "too large together"},
		"network":            {`{"$ref": "https://example.com/x"}`, "leads out of the schema"},
		"file":               {`{"$ref": "other.json"}`, "leads out of the schema"},
		"anchor":             {`{"$ref": "#there"}`, "leads out of the schema"},
		"id":                 {`{"properties": {"a": {"$id": "x"}}}`, "#/properties/a has $id"},
		"dynamic":            {`{"items": {"$dynamicRef": "#x"}}`, "#/items has $dynamicRef"},
		"nowhere":            {`{"$ref": "#/$defs/x"}`, "refers to #/$defs/x"},
		"no schema there":    {`{"$ref": "#/required", "required": ["a"]}`, "refers to #/required"},
		"itself":             {`{"$ref": "#"}`, "comes back to itself"},
		"itself by allOf":    {`{"allOf": [{"type": "object"}, {"$ref": "#"}]}`, "comes back to itself"},
		"itself by two":      {`{"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"if": {"$ref": "#/$defs/a"}}}}`, "comes back to itself"},
		"itself by a name":   {`{"dependentSchemas": {"a/b": {"$ref": "#"}}}`, "comes back to itself"},
		"itself, escaped":    {`{"$defs": {"a/b": {"$ref": "#/$defs/a~1b"}}}`, "comes back to itself"},
		"itself, in percent": {`{"$defs": {"a b": {"$ref": "#/$defs/a%20b"}}}`, "comes back to itself"},
		"too large":          {`{"title": "` + strings.Repeat("x", events.MaxOutputSchema) + `"}`, "the limit is"},
	} {
		_, err := Compile([]byte(c.schema))
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestValidate(t *testing.T) {
	const person = `{"type": "object", "required": ["name"], "additionalProperties": false,
		"properties": {"name": {"type": "string"}, "$id": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}}}`
	for _, c := range []struct{ schema, value, compact, says string }{
		{person, ` {"name": "a", "$id": 1, "children": [{"name": "b"}]} ` + "\n", `{"name":"a","$id":1,"children":[{"name":"b"}]}`, ""},
		{person, `{"name": "a", "children": [{"nom": "b"}]}`, "", "nom"},
		{person, `{}`, "", "name"},
		{person, `not JSON`, "", "not one JSON value"},
		{person, `{"name": "a"} {"name": "b"}`, "", "not one JSON value"},
		{person, "```json\n{\"name\": \"a\"}\n```", "", "not one JSON value"},
		{person, ``, "", "not one JSON value"},
		{`true`, `[1, 2]`, `[1,2]`, ""},
		{`false`, `[1, 2]`, "", "not:"},
		{`{}`, strings.Repeat("[", 300) + strings.Repeat("]", 300), "", "nested deeper"},
		{`{"type": "integer", "minimum": 3}`, `3`, `3`, ""},
		{`{"type": "integer", "minimum": 3}`, `2`, "", "minimum"},
	} {
		s, err := Compile([]byte(c.schema))
		require.NoError(t, err, c.schema)
		got, err := s.Validate([]byte(c.value))
		if c.says != "" {
			require.ErrorContains(t, err, c.says, c.value)
			continue
		}
		require.NoError(t, err, c.value)
		require.Equal(t, c.compact, string(got))
	}
}
