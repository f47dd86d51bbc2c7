package events

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var errNotObject = errors.New("it is not a JSON object")

// notObject tells a body that would decode without being a request: the
// decoder takes null for a value without members.
func notObject(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) == 0 || data[0] != '{'
}

// decodeError says in terms of JSON what is wrong with a body and where. Its
// size is bounded, whatever the caller's names are.
func decodeError(err error) *Error { return codecError("the body is not a valid request", err) }

// encodeError is decodeError for a request that cannot be sent as it is.
func encodeError(err error) *Error { return codecError("the request cannot be encoded", err) }

func codecError(operation string, err error) *Error {
	what, at := explain(err)
	e := &Error{Code: CodeInvalidRequest, Layer: LayerGate, Message: operation + ": " + what, cause: err}
	if at != "" {
		e.WithDetail("member", clip(string(at)))
	}
	return e
}

func explain(err error) (what string, at jsontext.Pointer) {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntactic):
		at = syntactic.JSONPointer
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			return fmt.Sprintf("the member %q is given twice%s", clip(at.LastToken()), within(at.Parent())), at
		case syntactic.Err != nil:
			return fmt.Sprintf("%s at byte %d%s", clip(syntactic.Err.Error()), syntactic.ByteOffset, within(at)), at
		}
	case errors.As(err, &semantic):
		at = semantic.JSONPointer
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return fmt.Sprintf("unknown member %q%s%s", clip(at.LastToken()), within(at.Parent()), meant(at.LastToken(), semantic.GoType)), at
		case semantic.Err != nil && len(semantic.JSONValue) > 0:
			return fmt.Sprintf("%s is no %s%s: %s", clip(string(semantic.JSONValue)), kindName(semantic.GoType), within(at), clip(semantic.Err.Error())), at
		case semantic.GoType != nil:
			return fmt.Sprintf("%s stands where %s belongs%s", jsonName(semantic.JSONKind), article(kindName(semantic.GoType)), within(at)), at
		}
	}
	return clip(err.Error()), at
}

// within names a place inside the body.
func within(at jsontext.Pointer) string {
	if at == "" {
		return ""
	}
	return " in " + clip(string(at))
}

// meant names the member of t that name was probably meant for: the one equal
// to it without regard to case, '-' and '_'.
func meant(name string, t reflect.Type) string {
	if t == nil || t.Kind() != reflect.Struct || len(name) > 80 {
		return ""
	}
	fold := strings.NewReplacer("-", "", "_", "")
	for _, f := range reflect.VisibleFields(t) {
		member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if member != "" && strings.EqualFold(fold.Replace(member), fold.Replace(name)) {
			return fmt.Sprintf(" (it is called %q)", member)
		}
	}
	return ""
}

func jsonName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	}
	return "something else"
}

func kindName(t reflect.Type) string {
	if t == nil {
		return "value of another type"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindName(t.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "whole number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "base64 string"
		}
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	return "value of another type"
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
