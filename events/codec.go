package events

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Marshal encodes any value of this package. It fails with [CodeTooLarge] when
// the result is over [MaxMessage], so that a reply that cannot be sent becomes
// an error reply.
func Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, Errorf(CodeInternal, LayerCoordinator, "encode %T: %w", v, err)
	}
	if len(b) > MaxMessage {
		return nil, Errorf(CodeTooLarge, LayerCoordinator, "encode %T: %d bytes are over the limit of %d", v, len(b), MaxMessage)
	}
	return b, nil
}

// MarshalRecord encodes a value that is kept on disk; no size limit.
func MarshalRecord(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, Errorf(CodeInternal, LayerCoordinator, "encode %T: %w", v, err)
	}
	return b, nil
}

// DecodeStrict decodes a request body. Unknown, duplicate and wrongly cased
// members, wrong types, invalid UTF-8 and trailing data are errors that name
// the member as a JSON pointer.
func DecodeStrict(data []byte, v any) *Error {
	if len(data) > MaxMessage {
		return Errorf(CodeTooLarge, LayerGate, "the body has %d bytes, the limit is %d", len(data), MaxMessage).
			WithRemedy("put a long prompt into a file and name it in prompt_file")
	}
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	return decodeError(err)
}

// DecodeRecord decodes a record, a report or a reply: unknown members are
// tolerated, everything else is as in [DecodeStrict].
func DecodeRecord(data []byte, v any) error {
	if err := json.Unmarshal(data, v, jsontext.AllowInvalidUTF8(true)); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}

// DecodeRequest decodes the body of event k and validates it.
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
	return nil, Errorf(CodeInvalidRequest, LayerGate, "there is no event %q", k)
}

func decodeAs[E SubagentEvent](data []byte) (SubagentEvent, *Error) {
	var e E
	if len(strings.TrimSpace(string(data[:min(len(data), 64)]))) == 0 {
		data = []byte("{}")
	}
	if err := DecodeStrict(data, &e); err != nil {
		return nil, err
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return e, nil
}

func decodeError(err error) *Error {
	e := Errorf(CodeInvalidRequest, LayerGate, "the body is not a valid request: %w", err)
	e.Message = strings.ReplaceAll(e.Message, "json: ", "")
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic) && semantic.JSONPointer != "":
		e.WithDetail("member", string(semantic.JSONPointer))
	case errors.As(err, &syntactic) && syntactic.JSONPointer != "":
		e.WithDetail("member", string(syntactic.JSONPointer))
	}
	return e
}
