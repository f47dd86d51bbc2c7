package tracing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConfigure(t *testing.T) {
	const all, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	for name, c := range map[string]struct {
		endpoint string
		env      map[string]string
		url      string
		fault    string
	}{
		"off by default":      {},
		"base":                {env: map[string]string{all + "ENDPOINT": "http://c:4318"}, url: "http://c:4318/v1/traces"},
		"base with a path":    {env: map[string]string{all + "ENDPOINT": "https://c/otlp/"}, url: "https://c/otlp/v1/traces"},
		"of traces, as it is": {env: map[string]string{all + "ENDPOINT": "http://c:4318", traces + "ENDPOINT": "http://d/x"}, url: "http://d/x"},
		"configured":          {"http://e", map[string]string{all + "ENDPOINT": "http://c", traces + "ENDPOINT": "http://d"}, "http://e/v1/traces", ""},
		"disabled":            {"http://e", map[string]string{"OTEL_SDK_DISABLED": "TRUE"}, "", ""},
		"no exporter":         {"http://e", map[string]string{"OTEL_TRACES_EXPORTER": "none"}, "", ""},
		"another exporter":    {"http://e", map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, "", "zipkin"},
		"no URL":              {"c:4318", nil, "", "not an http or https URL"},
		"gRPC":                {"http://e", map[string]string{all + "PROTOCOL": "grpc"}, "", "only http/json"},
		"timeout":             {"http://e", map[string]string{all + "TIMEOUT": "ten"}, "", "milliseconds"},
		"headers":             {"http://e", map[string]string{all + "HEADERS": "s3cret"}, "", "KEY=VALUE"},
		"header injection":    {"http://e", map[string]string{all + "HEADERS": "a=b%0d%0ac"}, "", "KEY=VALUE"},
		"compression":         {"http://e", map[string]string{all + "COMPRESSION": "zstd"}, "", "only gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Configure(c.endpoint, func(k string) string { return c.env[k] })
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				require.NotContains(t, err.Error(), "s3cret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.url, got.URL)
			require.Equal(t, c.url != "", got.Enabled())
		})
	}
	env := map[string]string{
		all + "HEADERS": "api-key=a%20b, x = y", traces + "TIMEOUT": "250", all + "TIMEOUT": "9", all + "COMPRESSION": "gzip",
		all + "PROTOCOL": "http/protobuf", all + "CERTIFICATE": "/ca.pem",
	}
	got, err := Configure("http://e", func(k string) string { return env[k] })
	require.NoError(t, err)
	require.Equal(t, Config{
		URL: "http://e/v1/traces", Headers: map[string]string{"api-key": "a b", "x": "y"}, Timeout: 250 * time.Millisecond, Gzip: true, CAFile: "/ca.pem",
		Warnings: []string{"OTLP is sent as http/json; collectors take it where they take http/protobuf"},
	}, got)
}
