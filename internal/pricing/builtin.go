package pricing

// openaiLong is the prompt above which a request as a whole has other rates.
const openaiLong = 272_000

// builtin are the prices of the models' makers for their own APIs, standard
// processing, as published up to November 2026:
//
//   - Anthropic: platform.claude.com/docs/en/about-claude/pricing and the overview
//     pages of the models there. Cache writes are those of five minutes; what is
//     written for an hour costs more than is counted here. Where a page names no
//     price of the cache, it is by the rule of the first: a tenth of input for
//     reads, a quarter more than input for writes.
//   - OpenAI: developers.openai.com/api/docs/models/MODEL. Cache writes are those
//     of the shortest retention.
//
// A model whose four prices were not found there is left out.
var builtin = Table{
	"claude-fable-5-1":  flat(10, 50, 0.25, 12.50),
	"claude-fable-5":    flat(10, 50, 1, 12.50),
	"claude-opus-5-5":   flat(4, 20, 0.20, 5),
	"claude-opus-5":     flat(5, 25, 0.50, 6.25),
	"claude-opus-4-8":   flat(5, 25, 0.50, 6.25),
	"claude-opus-4-7":   flat(5, 25, 0.50, 6.25),
	"claude-opus-4-6":   flat(5, 25, 0.50, 6.25),
	"claude-opus-4-5":   flat(5, 25, 0.50, 6.25),
	"claude-opus-4-1":   flat(15, 75, 1.50, 18.75),
	"claude-sonnet-5":   flat(2, 10, 0.20, 2.50),
	"claude-sonnet-4-6": flat(3, 15, 0.30, 3.75),
	"claude-sonnet-4-5": flat(3, 15, 0.30, 3.75),
	"claude-haiku-4-5":  flat(1, 5, 0.10, 1.25),

	"gpt-6.2-sol":   openai(2, 10, 0.10, 2.50),
	"gpt-6.1-terra": openai(1, 5, 0.05, 1.25),
}

func flat(input, output, cacheRead, cacheWrite float64) Price {
	return Price{Rates: Rates{Input: input, Output: output, CacheRead: cacheRead, CacheWrite: cacheWrite}}
}

// openai is a price with OpenAI's rule for long prompts: input and caches cost
// twice as much, output one and a half times.
func openai(input, output, cacheRead, cacheWrite float64) Price {
	p := flat(input, output, cacheRead, cacheWrite)
	p.Long = &Long{Over: openaiLong, Rates: Rates{Input: 2 * input, Output: 1.5 * output, CacheRead: 2 * cacheRead, CacheWrite: 2 * cacheWrite}}
	return p
}
