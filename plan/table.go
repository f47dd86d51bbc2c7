package plan

import (
	"sort"
	"strings"
	"time"

	"github.com/hayward-dev/hayward/internal/tomlpos"
)

// table reads the values of one TOML table by key and type. A value of another
// type is a fault, and so is every key that nobody asked for.
type table struct {
	faults *faults
	path   tomlpos.Path
	values map[string]any
	asked  map[string]bool
}

func newTable(f *faults, path tomlpos.Path, values map[string]any) *table {
	return &table{faults: f, path: path, values: values, asked: make(map[string]bool)}
}

func (t *table) key(name string) tomlpos.Path { return t.path.Key(name) }

func (t *table) get(name string) (any, bool) {
	t.asked[name] = true
	v, ok := t.values[name]
	return v, ok
}

func (t *table) has(name string) bool {
	_, ok := t.values[name]
	return ok
}

func value[T any](t *table, name, want string) (v T, ok bool) {
	raw, ok := t.get(name)
	if !ok {
		return v, false
	}
	if v, ok = raw.(T); !ok {
		t.faults.add(t.key(name), "is %s, not %s", kindOf(raw), want)
	}
	return v, ok
}

func (t *table) text(name string) string {
	s, ok := value[string](t, name, "a string")
	if ok && strings.ContainsRune(s, 0) {
		t.faults.add(t.key(name), "holds a NUL")
	}
	return s
}

// word is text that says nothing when it is empty.
func (t *table) word(name string) string {
	s := t.text(name)
	if _, given := t.values[name].(string); given && s == "" {
		t.faults.add(t.key(name), "is empty")
	}
	return s
}

func (t *table) boolean(name string) bool {
	b, _ := value[bool](t, name, "true or false")
	return b
}

// count reads a whole number between 1 and most; absent is 0.
func (t *table) count(name string, most int64) int {
	n, ok := value[int64](t, name, "a whole number")
	if ok && (n < 1 || n > most) {
		t.faults.add(t.key(name), "%d is not between 1 and %d", n, most)
		return 0
	}
	return int(n)
}

// duration reads a string such as "90s"; absent is 0.
func (t *table) duration(name string, most time.Duration) time.Duration {
	s, ok := value[string](t, name, `a duration such as "90s" or "1h30m"`)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		t.faults.add(t.key(name), `%q is not a duration such as "90s" or "1h30m"`, clip(s))
	case d < time.Millisecond || d > most:
		t.faults.add(t.key(name), "%s is not between 1ms and %s", d, most)
	default:
		return d
	}
	return 0
}

// list reads an array of strings; ok tells an empty one from none or a bad one.
func (t *table) list(name string) (list []string, ok bool) {
	raw, ok := t.get(name)
	if !ok {
		return nil, false
	}
	array, isArray := raw.([]any)
	if !isArray {
		if tables, isTables := raw.([]map[string]any); !isTables || len(tables) > 0 {
			t.faults.add(t.key(name), "is %s, not an array of strings", kindOf(raw))
			return nil, false
		}
	}
	ok = true
	for i, e := range array {
		s, isText := e.(string)
		switch {
		case !isText:
			t.faults.add(t.key(name).Index(i), "is %s, not a string", kindOf(e))
		case strings.ContainsRune(s, 0):
			t.faults.add(t.key(name).Index(i), "holds a NUL")
		default:
			list = append(list, s)
			continue
		}
		ok = false
	}
	if !ok {
		return nil, false
	}
	return list, true
}

// texts reads a table of strings.
func (t *table) texts(name string) map[string]string {
	raw, ok := value[map[string]any](t, name, "a table of strings")
	if !ok {
		return nil
	}
	texts := make(map[string]string, len(raw))
	for _, k := range sortedKeys(raw) {
		s, ok := raw[k].(string)
		if !ok {
			t.faults.add(t.key(name).Key(k), "is %s, not a string", kindOf(raw[k]))
			continue
		}
		texts[k] = s
	}
	return texts
}

// tables reads an array of tables; one that is something else is nil.
func (t *table) tables(name string) []map[string]any {
	raw, ok := t.get(name)
	if !ok {
		return nil
	}
	switch v := raw.(type) {
	case []map[string]any:
		return v
	case []any:
		// An array written in place, possibly of mixed types.
		tables := make([]map[string]any, 0, len(v))
		for i, e := range v {
			table, ok := e.(map[string]any)
			if !ok {
				t.faults.add(t.key(name).Index(i), "is %s, not a table", kindOf(e))
			}
			tables = append(tables, table)
		}
		return tables
	}
	t.faults.add(t.key(name), "is %s, not an array of tables: write [[%s]]", kindOf(raw), name)
	return nil
}

// rest makes every key that was not asked for a fault.
func (t *table) rest() {
	known := sortedKeys(t.asked)
	for _, k := range sortedKeys(t.values) {
		if t.asked[k] {
			continue
		}
		if near := nearest(k, known); near != "" {
			t.faults.add(t.key(k), "unknown key; did you mean %s?", near)
		} else {
			t.faults.add(t.key(k), "unknown key; the keys here are %s", strings.Join(known, ", "))
		}
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "a whole number"
	case float64:
		return "a number"
	case bool:
		return "a boolean"
	case time.Time:
		return "a date or time"
	case []any:
		return "an array"
	case []map[string]any:
		return "an array of tables"
	case map[string]any:
		return "a table"
	}
	return "of an unknown type"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// nearest returns the one of known that name is probably a slip of, or "".
func nearest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions and replacements of bytes
// between a and b.
func editDistance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// clip shortens a string of the file for a message.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}
