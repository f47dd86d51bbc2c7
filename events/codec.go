package events

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Marshal encodes any value of this package. It fails with [CodeTooLarge] when
// the result is over [MaxMessage], so that a reply that cannot be sent becomes
// an error reply. Text that is not UTF-8 is repaired in what Hayward reports
// and refused in what is asked of it: a request must mean what its caller meant.
func Marshal(v any) ([]byte, error) {
	b, err := MarshalRecord(v)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxMessage {
		return nil, Errorf(CodeTooLarge, LayerCoordinator, "encode %T: %d bytes are over the limit of %d", v, len(b), MaxMessage)
	}
	return b, nil
}

// MarshalRecord encodes a value that is kept on disk; no size limit.
func MarshalRecord(v any) ([]byte, error) {
	_, request := v.(SubagentEvent)
	b, err := json.Marshal(v, json.Deterministic(true), inUTC, jsontext.AllowInvalidUTF8(!request))
	switch {
	case err == nil:
		return b, nil
	case request:
		return nil, encodeError(err)
	}
	return nil, Errorf(CodeInternal, LayerCoordinator, "encode %T: %w", v, err)
}

// inUTC writes every time in UTC, whatever zone its clock had.
var inUTC = json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, t time.Time) error {
	if t.Location() == time.UTC {
		return errors.ErrUnsupported // the default encoding is right
	}
	return json.MarshalEncode(enc, t.UTC())
}))

// DecodeStrict decodes a request body, one JSON object. Unknown, duplicate and
// wrongly cased members, wrong types, invalid UTF-8 and trailing data are errors
// that name the member as a JSON pointer. A member that is null is absent.
func DecodeStrict(data []byte, v any) *Error {
	if len(data) > MaxMessage {
		return Errorf(CodeTooLarge, LayerGate, "the body has %d bytes, the limit is %d", len(data), MaxMessage).
			WithRemedy("put a long prompt into a file and name it in prompt_file")
	}
	if notObject(data) {
		return decodeError(errNotObject)
	}
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return decodeError(err)
	}
	return nil
}

// DecodeRecord decodes a record, a report or a reply: unknown members are
// tolerated and invalid UTF-8 is repaired, everything else is as in
// [DecodeStrict].
func DecodeRecord(data []byte, v any) error {
	if err := json.Unmarshal(data, v, jsontext.AllowInvalidUTF8(true)); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}

// DecodeRequest decodes the body of event k and validates it. An empty body is
// an object without members.
func DecodeRequest(k Kind, data []byte) (SubagentEvent, *Error) {
	switch k {
	case KindSpawn:
		return decodeAs[Spawn](data)
	case KindQuery:
		return decodeAs[Query](data)
	case KindCancel:
		return decodeAs[Cancel](data)
	case KindListActive:
		return decodeAs[ListActive](data)
	case KindCompletions:
		return decodeAs[Completions](data)
	case KindOutstanding:
		return decodeAs[Outstanding](data)
	}
	return nil, Errorf(CodeInvalidRequest, LayerGate, "there is no event %q", clip(string(k)))
}

func decodeAs[E SubagentEvent](data []byte) (SubagentEvent, *Error) {
	return decodeOf(data, func(*E) {})
}

// decodeOf is decodeAs with something filled in before the check.
func decodeOf[E SubagentEvent](data []byte, settle func(*E)) (SubagentEvent, *Error) {
	var e E
	if len(data) <= MaxMessage && len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	if err := DecodeStrict(data, &e); err != nil {
		return nil, err
	}
	if s, ok := any(&e).(*Spawn); ok && string(s.OutputSchema) == "null" {
		s.OutputSchema = nil // raw members keep their null
	}
	settle(&e)
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return e, nil
}
