package tracing

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config says where spans go.
type Config struct {
	// URL is where they are posted to.
	URL string
	// Headers are sent along.
	Headers map[string]string
	// Timeout bounds one export.
	Timeout time.Duration
	// Gzip compresses what is sent.
	Gzip bool
	// CAFile holds the certificates to trust instead of the system's. Empty: those.
	CAFile string
	// Warnings are about settings that are not used as they are.
	Warnings []string
}

// Enabled reports whether there is somewhere to send spans to.
func (c Config) Enabled() bool { return c.URL != "" }

// defaultTimeout is that of the OTLP exporter specification.
const defaultTimeout = 10 * time.Second

// Configure reads the environment variables of the OTLP exporter specification.
// endpoint, if set, stands in the place of OTEL_EXPORTER_OTLP_ENDPOINT and wins
// over it. Without any there is no tracing; OTEL_SDK_DISABLED=true and
// OTEL_TRACES_EXPORTER=none turn it off.
func Configure(endpoint string, getenv func(string) string) (Config, error) {
	c := Config{Timeout: defaultTimeout}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return c, nil
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return c, nil
	default:
		return c, fmt.Errorf("OTEL_TRACES_EXPORTER is %q; otlp and none are known", exporter)
	}
	// The variable for traces wins over that for everything.
	first := func(name string) string {
		if v := getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
			return v
		}
		return getenv("OTEL_EXPORTER_OTLP_" + name)
	}
	target := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") // as it is
	base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT")          // the path of traces goes below it
	if endpoint != "" {
		target, base = "", endpoint
	}
	if target == "" && base != "" {
		target = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if target == "" {
		return c, nil
	}
	u, err := url.Parse(target)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return c, fmt.Errorf("the endpoint for traces %q is not an http or https URL", target)
	}
	switch protocol := first("PROTOCOL"); protocol {
	case "", "http/json":
	case "http/protobuf":
		c.Warnings = append(c.Warnings, "OTLP is sent as http/json; collectors take it where they take http/protobuf")
	default:
		return c, fmt.Errorf("the OTLP protocol %q is not supported, only http/json", protocol)
	}
	if ms := first("TIMEOUT"); ms != "" {
		n, err := strconv.ParseInt(ms, 10, 32)
		if err != nil || n <= 0 {
			return c, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT %q is not a positive number of milliseconds", ms)
		}
		c.Timeout = time.Duration(n) * time.Millisecond
	}
	if c.Headers, err = headers(first("HEADERS")); err != nil {
		return c, err
	}
	switch compression := first("COMPRESSION"); compression {
	case "", "none":
	case "gzip":
		c.Gzip = true
	default:
		return c, fmt.Errorf("the OTLP compression %q is not supported, only gzip and none", compression)
	}
	c.URL, c.CAFile = u.String(), first("CERTIFICATE")
	return c, nil
}

// headers parses "key=value,key=value", the values URL-encoded. What is wrong
// with it is told without its values, which may be secret.
func headers(text string) (map[string]string, error) {
	all := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil || strings.ContainsAny(key+decoded, "\r\n") {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS is not of the form KEY=VALUE,KEY=VALUE")
		}
		all[key] = decoded
	}
	return all, nil
}
