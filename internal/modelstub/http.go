package modelstub

import (
	"encoding/json"
	"net/http"
	"strings"
)

// secretHeaders carry credentials.
var secretHeaders = []string{"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization"}

// secretOf is the credential of a request.
func secretOf(h http.Header) string {
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	return strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
}

func withoutSecrets(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range secretHeaders {
		if v := h.Get(name); v != "" {
			h.Set(name, "sha256:"+Fingerprint(strings.TrimPrefix(v, "Bearer ")))
		}
	}
	return h
}

// conversation tells the conversations of clients that say which one a request is
// of, so that the failures of one are not counted for another.
func conversation(h http.Header) string {
	for _, name := range []string{"X-Claude-Code-Session-Id", "Session_id", "Session-Id", "Conversation_id", "X-Conversation-Id"} {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// reply writes a JSON body. A client that went away misses it, which is its affair.
func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// fail writes an error in the form of the API.
func fail(w http.ResponseWriter, a api, f Failure) {
	if f.Type == "" {
		f.Type = errorTypes[f.Status]
	}
	if f.Type == "" {
		f.Type = "api_error"
	}
	if f.Message == "" {
		f.Message = http.StatusText(f.Status)
		if f.Status == statusOverloaded {
			f.Message = "Overloaded"
		}
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	body := map[string]any{"error": map[string]any{"type": f.Type, "message": f.Message, "code": nil, "param": nil}}
	if _, ok := a.(anthropic); ok {
		body = map[string]any{"type": "error", "error": map[string]any{"type": f.Type, "message": f.Message}, "request_id": "req_stub"}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(body)
}

const statusOverloaded = 529

var errorTypes = map[int]string{
	http.StatusBadRequest:          "invalid_request_error",
	http.StatusUnauthorized:        "authentication_error",
	http.StatusForbidden:           "permission_error",
	http.StatusNotFound:            "not_found_error",
	http.StatusTooManyRequests:     "rate_limit_error",
	http.StatusInternalServerError: "api_error",
	statusOverloaded:               "overloaded_error",
}

// models answers the list of models, in a form that fits both APIs.
func (s *Server) models(w http.ResponseWriter) {
	names := s.script.Models
	if len(names) == 0 {
		names = []string{"claude-stub", "gpt-stub"}
	}
	data := []any{}
	for _, name := range names {
		data = append(data, map[string]any{
			"id": name, "type": "model", "object": "model", "display_name": name,
			"created": 1767225600, "created_at": "2026-01-01T00:00:00Z", "owned_by": "stub",
		})
	}
	reply(w, map[string]any{"object": "list", "data": data, "has_more": false, "first_id": names[0], "last_id": names[len(names)-1]})
}
