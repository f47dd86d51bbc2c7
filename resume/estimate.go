package resume

import "github.com/hayward-dev/hayward/events"

const (
	// bytesPerToken is how much text a token is taken for.
	bytesPerToken = 4
	// imageTokens is what an image is taken for.
	imageTokens = 765
)

// imageEvent is the item of an image in a message of the user.
const imageEvent = "user/image"

// Estimate is how many tokens of a model's context an item takes: a quarter of the
// bytes of its text, rounded down; for a call of a tool those of its arguments
// without its name; 765 for an image. What an agent inside the agent said is in
// a context of its own, and what is no part of the conversation takes nothing.
func Estimate(i events.Item) int64 {
	if i.ParentToolID != "" {
		return 0
	}
	size := int64(len(i.Text))
	switch i.Kind {
	case events.ItemPrompt, events.ItemMessage, events.ItemThinking, events.ItemToolResult:
	case events.ItemToolCall:
		size = int64(max(len(i.Input), len(i.Text)))
	case events.ItemEvent:
		if i.Tool == imageEvent {
			return imageTokens
		}
		return 0
	default:
		return 0
	}
	if i.TextOmitted { // the item has a part of the line that it was made from
		size = max(size, i.Bytes)
	}
	return size / bytesPerToken
}
