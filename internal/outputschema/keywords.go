package outputschema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// keywords are those that the library reads: the names in its type, and those that
// it decodes by hand.
var keywords = func() map[string]bool {
	names := map[string]bool{"type": true, "items": true, "dependencies": true, "const": true}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[jsonschema.Schema]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names[name] = true
		}
	}
	return names
}()

// checkSpelling refuses what the library takes for a keyword and nobody else does: it
// reads the names of members whatever the case of their letters is.
func checkSpelling(schema map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		if keywords[name] {
			continue
		}
		for keyword := range keywords {
			if strings.EqualFold(name, keyword) {
				return fmt.Errorf("%q is no keyword; it is written %s", name, keyword)
			}
		}
	}
	return nil
}

// typeWords are the values of type (JSON Schema 2020-12, 6.1.1 of its validation
// vocabulary). No value has another type, which the library finds at the first value.
var typeWords = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

func checkTypes(value any) error {
	list, isList := value.([]any)
	if !isList && value != nil {
		list = []any{value}
	}
	for _, v := range list {
		if word, ok := v.(string); !ok || !slices.Contains(typeWords, word) {
			return fmt.Errorf("%q is no type; they are %s", fmt.Sprint(v), strings.Join(typeWords, ", "))
		}
	}
	return nil
}
