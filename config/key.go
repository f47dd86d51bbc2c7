package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	units "github.com/docker/go-units"
)

// Kind is the type of a key's value.
type Kind string

// The kinds.
const (
	KindString   Kind = "string"
	KindBool     Kind = "boolean"
	KindInt      Kind = "integer"
	KindDuration Kind = "duration" // a string such as "90s", "10m" or "1h30m"
	KindCounts   Kind = "table"    // whole numbers by name: a table, on a command line "a=1,b=2"
	KindSize     Kind = "size"     // bytes: a string such as "512M" or "2G", or a whole number
	KindNumber   Kind = "number"   // a number that may have a fraction, not negative
	KindPrices   Kind = "prices"   // prices by model: a table of tables
)

// Scope says who uses a key.
type Scope string

// The scopes.
const (
	// ScopeClient keys are defaults of requests: the client resolves them.
	ScopeClient Scope = "client"
	// ScopeDaemon keys are read once, when a daemon starts.
	ScopeDaemon Scope = "daemon"
)

// Key is one setting.
type Key struct {
	// Name is the dotted path in the file, such as limits.per_session.
	Name  string
	Kind  Kind
	Scope Scope
	// Default is the value as text, empty for none.
	Default string
	// Env is the client's environment variable, Flag the flag, without dashes, of
	// Verbs. Empty ones do not exist.
	Env   string
	Flag  string
	Verbs string
	// About says what the key is or bounds, for people.
	About string
	// Values are the words that a string may be; nil: any.
	Values []string
	// Least is the least value of an integer, and in nanoseconds of a duration.
	Least int64
	// check finds what is wrong with a value of the right type.
	check func(any) error
}

// Section is the table that the key is in, empty for a key at the top, and Leaf
// its name in there.
func (k *Key) Section() string {
	section, _, ok := strings.Cut(k.Name, ".")
	if !ok {
		return ""
	}
	return section
}

// Leaf is the key's name in its table.
func (k *Key) Leaf() string {
	if _, leaf, ok := strings.Cut(k.Name, "."); ok {
		return leaf
	}
	return k.Name
}

// parse reads a value from text: a variable, a flag or a default.
func (k *Key) parse(text string) (any, error) {
	var v any
	var err error
	switch k.Kind {
	case KindBool:
		if v, err = strconv.ParseBool(text); err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
	case KindInt:
		if v, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
	case KindDuration:
		if v, err = parseDuration(text); err != nil {
			return nil, err
		}
	case KindSize:
		if v, err = parseSize(text); err != nil {
			return nil, err
		}
	case KindCounts:
		if v, err = parseCounts(text); err != nil {
			return nil, err
		}
	case KindNumber:
		if v, err = parseNumber(text); err != nil {
			return nil, err
		}
	case KindPrices:
		if v, err = parsePrices(text); err != nil {
			return nil, err
		}
	default:
		v = text
	}
	return v, k.validate(v)
}

// decode takes a value from a TOML file.
func (k *Key) decode(raw any) (any, error) {
	var v any
	switch k.Kind {
	case KindBool:
		b, ok := raw.(bool)
		if !ok {
			return nil, wrongType(raw, "true or false")
		}
		v = b
	case KindInt:
		n, ok := raw.(int64)
		if !ok {
			return nil, wrongType(raw, "a whole number")
		}
		v = n
	case KindDuration:
		s, ok := raw.(string)
		if !ok {
			return nil, wrongType(raw, `a duration in quotation marks, such as "90s"`)
		}
		d, err := parseDuration(s)
		if err != nil {
			return nil, err
		}
		v = d
	case KindCounts:
		table, ok := raw.(map[string]any)
		if !ok {
			return nil, wrongType(raw, "a table of whole numbers")
		}
		all := make(counts)
		for _, name := range slices.Sorted(maps.Keys(table)) {
			n, ok := table[name].(int64)
			if !ok {
				return nil, leafError{name, wrongType(table[name], "a whole number")}
			}
			all[name] = int(n)
		}
		v = all
	case KindNumber:
		n, err := decodeNumber(raw)
		if err != nil {
			return nil, err
		}
		v = n
	case KindPrices:
		all, err := decodePrices(raw)
		if err != nil {
			return nil, err
		}
		v = all
	case KindSize:
		if n, ok := raw.(int64); ok {
			raw = strconv.FormatInt(n, 10)
		}
		s, ok := raw.(string)
		if !ok {
			return nil, wrongType(raw, `a size such as "512M"`)
		}
		n, err := parseSize(s)
		if err != nil {
			return nil, err
		}
		v = n
	default:
		s, ok := raw.(string)
		if !ok {
			return nil, wrongType(raw, "a string")
		}
		v = s
	}
	return v, k.validate(v)
}

// durationForm is what [time.ParseDuration] takes, of any size.
var durationForm = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil && durationForm.MatchString(s) {
		return 0, fmt.Errorf("%q is out of the range of a duration", s)
	}
	if err != nil {
		return 0, fmt.Errorf(`%q is not a duration such as "90s", "10m" or "1h30m"`, s)
	}
	return d, nil
}

// counts are whole numbers by name.
type counts map[string]int

// parseCounts reads what String prints, with or without brackets around it.
func parseCounts(text string) (counts, error) {
	all := make(counts)
	for pair := range strings.SplitSeq(strings.Trim(text, "[]"), ",") {
		name, count, ok := strings.Cut(pair, "=")
		n, err := strconv.Atoi(count)
		if !ok || name == "" || err != nil {
			return nil, fmt.Errorf("%q is not of the form NAME=NUMBER", pair)
		}
		all[name] = n
	}
	return all, nil
}

// String lists the numbers by name.
func (c counts) String() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		pairs = append(pairs, fmt.Sprintf("%s=%d", name, c[name]))
	}
	return strings.Join(pairs, ",")
}

// size is a number of bytes.
type size int64

func parseSize(s string) (size, error) {
	n, err := units.RAMInBytes(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf(`%q is not a size such as "512M" or "2G"`, s)
	}
	return size(n), nil
}

// String is the size in the largest unit that it is a whole number of.
func (n size) String() string {
	unit := 0
	for ; n != 0 && n%1024 == 0 && unit < 4; n /= 1024 {
		unit++
	}
	return strconv.FormatInt(int64(n), 10) + []string{"", "K", "M", "G", "T"}[unit]
}

// leafError is what is wrong with one member of a table.
type leafError struct {
	leaf string
	err  error
}

// Error names the member first.
func (e leafError) Error() string { return e.leaf + ": " + e.err.Error() }

func wrongType(raw any, want string) error {
	is := map[bool]string{true: "a table"}[isTable(raw)]
	switch raw.(type) {
	case string:
		is = "a string"
	case bool:
		is = "a boolean"
	case int64:
		is = "a whole number"
	case float64:
		is = "a number with a fraction"
	case []any, []map[string]any:
		is = "a list"
	case time.Time:
		is = "a time"
	}
	return fmt.Errorf("is %s and should be %s", is, want)
}

func isTable(raw any) bool {
	_, ok := raw.(map[string]any)
	return ok
}

func (k *Key) validate(v any) error {
	switch x := v.(type) {
	case int64:
		if x < k.Least {
			return fmt.Errorf("%d is less than %d", x, k.Least)
		}
	case time.Duration:
		if int64(x) < k.Least {
			return fmt.Errorf("%s is less than %s", x, time.Duration(k.Least))
		}
	case counts:
		for _, name := range slices.Sorted(maps.Keys(x)) {
			if int64(x[name]) < k.Least {
				return leafError{name, fmt.Errorf("%d is less than %d", x[name], k.Least)}
			}
		}
	case string:
		if len(k.Values) > 0 && !slices.Contains(k.Values, x) {
			return fmt.Errorf("%q is not one of %s", x, strings.Join(k.Values, ", "))
		}
	}
	if k.check != nil {
		return k.check(v)
	}
	return nil
}

// format is the inverse of parse.
func format(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case time.Duration:
		return shortDuration(x)
	}
	return fmt.Sprint(v)
}

// Duration is a duration as values of keys are written.
func Duration(d time.Duration) string { return shortDuration(d) }

// Size is a number of bytes as values of keys are written.
func Size(n int64) string { return size(n).String() }

// Count is a number as values of keys are written.
func Count(n int64) string { return format(n) }

// shortDuration leaves out the zeros at the end that [time.Duration] prints.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
