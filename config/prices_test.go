package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hayward-dev/hayward/internal/pricing"
)

func TestPrices(t *testing.T) {
	p := newPlace(t)
	file := p.write(p.UserDir, "config.toml", `[gateway]
max_cost_usd = 2.5
[gateway.prices]
"a.b" = { input = 3, output = 15.5, cache_read = 0.3, cache_write = 3.75 }
c = { input = 2, output = 10, long = { over = 272_000, input = 4, output = 15, cache_read = 1 } }
`)
	c := p.load()
	require.InDelta(t, 2.5, c.Number(GatewayMaxCost), 0)
	want := pricing.Table{
		"a.b": {Rates: pricing.Rates{Input: 3, Output: 15.5, CacheRead: 0.3, CacheWrite: 3.75}},
		"c": {
			Rates: pricing.Rates{Input: 2, Output: 10, CacheRead: 2, CacheWrite: 2},
			Long:  &pricing.Long{Over: 272_000, Rates: pricing.Rates{Input: 4, Output: 15, CacheRead: 1, CacheWrite: 4}},
		},
	}
	require.Equal(t, want, c.Prices(GatewayPrices))

	// What is shown can be read again.
	again, err := GatewayPrices.parse(c.Value(GatewayPrices).Text)
	require.NoError(t, err)
	require.Equal(t, prices(want), again)
	require.Nil(t, newPlace(t).load().Prices(GatewayPrices))

	p.write(p.UserDir, "config.toml", `[gateway]
max_cost_usd = -1
[gateway.prices]
a = 3
b = { input = 3 }
`)
	require.Equal(t, []string{
		file + `:2: gateway.max_cost_usd: "-1" is not a number of 0 or more, such as 2.5`,
		file + `:4: gateway.prices: a: is a whole number and should be a table: { input = 3, output = 15 }`,
	}, p.faults())
	for text, says := range map[string]string{
		`b = { input = 3 }`:                                   "b: input and output are both needed",
		`b = { input = 3, output = "x" }`:                     "b: output: is a string and should be a number",
		`b = { input = 3, output = -1.5 }`:                    "b: output: \"-1.5\" is not a number of 0 or more",
		`b = { input = 3, output = 4, cached = 1 }`:           "b: cached is not a price",
		`b = { input = 3, output = 4, long = { input = 1 } }`: "b: long is not a table with a whole number over",
		`b = { input = 3, output = 4, long = 5 }`:             "b: long is not a table with a whole number over",
		`b = { input = 3, output = 4, long = { over = 5 } }`:  "b: long: input and output are both needed",
		`b = { input = 3, output = 4000000 }`:                 "b: output 4e+06 is not between",
	} {
		p.write(p.UserDir, "config.toml", "[gateway.prices]\n"+text+"\n")
		all := p.faults()
		require.Len(t, all, 1)
		require.Contains(t, all[0], file+":2: gateway.prices: "+says)
	}
}
