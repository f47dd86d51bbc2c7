package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/hayward-dev/hayward/internal/pricing"
)

// number is a number that is not negative.
type number float64

func parseNumber(text string) (number, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		return 0, fmt.Errorf("%q is not a number of 0 or more, such as 2.5", text)
	}
	return number(f), nil
}

func decodeNumber(raw any) (number, error) {
	switch n := raw.(type) {
	case int64:
		return parseNumber(strconv.FormatInt(n, 10))
	case float64:
		return parseNumber(number(n).String())
	}
	return 0, wrongType(raw, "a number")
}

// String is the shortest decimal form, which TOML reads as well.
func (n number) String() string { return strconv.FormatFloat(float64(n), 'f', -1, 64) }

// prices are prices by model.
type prices pricing.Table

// parsePrices reads what String prints.
func parsePrices(text string) (prices, error) {
	var file struct {
		Prices any `toml:"prices"`
	}
	if _, err := toml.Decode("prices = "+text, &file); err != nil {
		return nil, errors.New("is not a table of prices as TOML has it")
	}
	return decodePrices(file.Prices)
}

func decodePrices(raw any) (prices, error) {
	table, ok := raw.(map[string]any)
	if !ok {
		return nil, wrongType(raw, "a table of models")
	}
	all := prices{}
	for _, model := range slices.Sorted(maps.Keys(table)) {
		p, err := decodePrice(table[model])
		if err != nil {
			return nil, leafError{model, err}
		}
		all[model] = p
	}
	return all, nil
}

func decodePrice(raw any) (p pricing.Price, err error) {
	table, ok := raw.(map[string]any)
	if !ok {
		return p, wrongType(raw, "a table: { input = 3, output = 15 }")
	}
	table = maps.Clone(table)
	long, isLong := table["long"]
	delete(table, "long")
	if p.Rates, err = decodeRates(table); err != nil || !isLong {
		return p, err
	}
	table, ok = long.(map[string]any)
	over, isCount := table["over"].(int64)
	if !ok || !isCount || over < 0 {
		return p, errors.New("long is not a table with a whole number over: { over = 272000, input = 4, output = 15 }")
	}
	table = maps.Clone(table)
	delete(table, "over")
	p.Long = &pricing.Long{Over: over}
	if p.Long.Rates, err = decodeRates(table); err != nil {
		return p, fmt.Errorf("long: %w", err)
	}
	return p, nil
}

func decodeRates(table map[string]any) (pricing.Rates, error) {
	var r pricing.Rates
	members := map[string]*float64{"input": &r.Input, "output": &r.Output, "cache_read": &r.CacheRead, "cache_write": &r.CacheWrite}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		to, ok := members[name]
		if !ok {
			return r, fmt.Errorf("%s is not a price; there are input, output, cache_read, cache_write and long", name)
		}
		n, err := decodeNumber(table[name])
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		*to = float64(n)
		delete(members, name)
	}
	if members["input"] != nil || members["output"] != nil {
		return r, errors.New("input and output are both needed")
	}
	for _, to := range members {
		*to = r.Input
	}
	return r, r.Check()
}

// String is the inline table that TOML reads.
func (p prices) String() string {
	models := make([]string, 0, len(p))
	for _, model := range slices.Sorted(maps.Keys(p)) {
		long := ""
		if l := p[model].Long; l != nil {
			long = fmt.Sprintf(", long = { over = %d, %s }", l.Over, shownRates(l.Rates))
		}
		models = append(models, fmt.Sprintf("%q = { %s%s }", model, shownRates(p[model].Rates), long))
	}
	return "{ " + strings.Join(models, ", ") + " }"
}

func shownRates(r pricing.Rates) string {
	return fmt.Sprintf("input = %s, output = %s, cache_read = %s, cache_write = %s", number(r.Input), number(r.Output), number(r.CacheRead), number(r.CacheWrite))
}
