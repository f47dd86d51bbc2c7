package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hayward-dev/hayward/events"
)

// Upstream is a model API that agents may reach.
type Upstream struct {
	// Name is the first part of the paths of its requests: anthropic or openai.
	Name string
	// Base is where it is, such as https://api.anthropic.com.
	Base string
	// KeyFile is the file that holds the key. KeyEnv is a variable of the
	// coordinator. Credential is the name of a systemd credential. The first that
	// there is counts.
	KeyFile, KeyEnv, Credential string
}

// dialect is what a model API expects and how its answers are read.
type dialect struct {
	// paths are the requests that are forwarded, by method and path; a * is one
	// part.
	paths []string
	// authorize puts the key into a request.
	authorize func(h http.Header, key string)
	// presented is the credential that a request came with.
	presented func(h http.Header) string
	// failure is the body of an answer that says what failed, and tail the end of a
	// stream that breaks off.
	failure func(kind, message string) string
	tail    string
	// read finds the usage in an answer.
	read func() usageReader
	// countable returns the body with which a request's answer says what it used, or
	// refuses it. Nil: every answer does.
	countable func(p string, a ask, body []byte) ([]byte, *events.Error)
}

// The paths whose requests differ in what they use.
const (
	pathCountTokens = "/v1/messages/count_tokens"
	pathResponses   = "/v1/responses"
	pathCompact     = "/v1/responses/compact"
	pathChat        = "/v1/chat/completions"
)

var dialects = map[string]dialect{
	"anthropic": {
		paths: []string{"POST /v1/messages", "POST " + pathCountTokens, "GET /v1/models", "GET /v1/models/*"},
		authorize: func(h http.Header, key string) {
			h.Del("Authorization")
			h.Set("X-Api-Key", key)
		},
		presented: func(h http.Header) string { return cmp.Or(h.Get("X-Api-Key"), bearer(h)) },
		failure: func(kind, message string) string {
			return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`+"\n", kind, message)
		},
		tail: "\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"the connection to the model broke off, retry\"}}\n\n",
		read: func() usageReader { return &anthropicUsage{} },
	},
	"openai": {
		paths:     []string{"POST " + pathResponses, "POST " + pathCompact, "POST " + pathChat, "GET /v1/models", "GET /v1/models/*"},
		authorize: func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) },
		presented: bearer,
		failure: func(kind, message string) string {
			return fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":%q}}`+"\n", kind, kind, message)
		},
		tail:      "\n\nevent: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"the connection to the model broke off, retry\",\"param\":null}\n\n",
		read:      func() usageReader { return &openaiUsage{} },
		countable: openaiCountable,
	},
}

func bearer(h http.Header) string {
	token, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return token
}

// allows reports whether a request may be forwarded. p is clean.
func (d dialect) allows(method, p string) bool {
	for _, pattern := range d.paths {
		if ok, _ := path.Match(pattern, method+" "+p); ok { // the patterns are constants
			return true
		}
	}
	return false
}

// target is where a path of the upstream leads. A base that ends in /v1 takes the
// place of that of the path.
func (u Upstream) target(p, query string) (*url.URL, error) {
	base, err := url.Parse(u.Base)
	if err != nil {
		return nil, fmt.Errorf("the address of %s: %w", u.Name, err)
	}
	root := strings.TrimSuffix(base.Path, "/")
	base.Path = strings.TrimSuffix(root, "/v1") + p
	base.RawPath, base.RawQuery, base.Fragment = "", query, ""
	return base, nil
}

// ErrNoKey: there is no key for an upstream.
var ErrNoKey = errors.New("there is no key")

// maxKey bounds a key file.
const maxKey = 16 << 10

// Key reads the key.
func (u Upstream) Key(getenv func(string) string) (string, error) {
	if u.KeyFile != "" {
		return readKey(u.KeyFile)
	}
	if dir := getenv("CREDENTIALS_DIRECTORY"); dir != "" && u.Credential != "" {
		key, err := readKey(filepath.Join(dir, u.Credential))
		if !errors.Is(err, os.ErrNotExist) {
			return key, err
		}
	}
	if key := strings.TrimSpace(getenv(u.KeyEnv)); u.KeyEnv != "" && key != "" {
		return key, nil
	}
	return "", fmt.Errorf("%w for %s: set %s in the environment of hayward serve, or gateway.%s_key_file", ErrNoKey, u.Name, u.KeyEnv, u.Name)
}

// readKey reads a file that only its owner may read.
func readKey(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !st.Mode().IsRegular() || st.Size() > maxKey:
		return "", fmt.Errorf("%s is not a key: not a small regular file", name)
	case st.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s can be read by others: chmod 600", name)
	}
	b := make([]byte, st.Size())
	n, err := f.Read(b)
	if key := strings.TrimSpace(string(b[:n])); key != "" && !strings.ContainsAny(key, "\r\n") {
		return key, nil
	}
	return "", fmt.Errorf("%s holds no key: %w", name, errors.Join(ErrNoKey, err))
}
