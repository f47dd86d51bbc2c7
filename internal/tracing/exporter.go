package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
)

const (
	minRetry = 200 * time.Millisecond
	maxRetry = 5 * time.Second
	// maxAnswer bounds what is read of a collector's answer.
	maxAnswer = 64 << 10
)

// exporter posts spans. It implements [sdk.SpanExporter].
type exporter struct {
	config Config
	client *http.Client
	log    *zap.Logger
	// ctx ends with the exporter: it cuts an export that is under way.
	ctx    context.Context
	cancel context.CancelFunc
	// failing tells that the last export failed, and that this was said.
	failing atomic.Bool
}

func newExporter(c Config, log *zap.Logger) (*exporter, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificates of the collector: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", c.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	e := &exporter{config: c, client: &http.Client{Transport: transport}, log: log}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// ExportSpans implements [sdk.SpanExporter]. It returns no error: what fails is
// said here, once.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, e.config.Timeout)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	err := e.export(ctx, spans)
	switch {
	case err == nil && e.failing.CompareAndSwap(true, false):
		e.log.Info("spans are taken again")
	case err != nil && e.failing.CompareAndSwap(false, true):
		e.log.Warn("spans were dropped, and more will be until the collector takes them; this is said once", zap.Int("spans", len(spans)), zap.Error(err))
	}
	return nil
}

func (e *exporter) export(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	body, err := json.Marshal(encode(spans), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	if e.config.Gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(body); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		body = b.Bytes()
	}
	var last error
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		again, err := e.post(ctx, body)
		if err == nil || again < 0 {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err // the collector's word says more than our deadline
		}
		t := time.NewTimer(max(wait, again))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return last
		}
	}
}

// post sends once. again is how long to wait at least before the next try,
// negative when that would be in vain.
func (e *exporter) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.URL, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	for k, v := range e.config.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/json")
	if e.config.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode/100 == 2:
		return -1, rejected(said)
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusBadGateway ||
		resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusGatewayTimeout:
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			again = time.Duration(s) * time.Second
		}
	default:
		again = -1
	}
	if err != nil {
		return again, err
	}
	return again, fmt.Errorf("%s answered %s", req.URL.Redacted(), resp.Status)
}

// rejected is what a collector that took a request says of spans that it did not
// take, or nil.
func rejected(said []byte) error {
	var answer struct {
		PartialSuccess struct {
			RejectedSpans string `json:"rejectedSpans"`
			ErrorMessage  string `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(said, &answer) != nil || answer.PartialSuccess.RejectedSpans == "" || answer.PartialSuccess.RejectedSpans == "0" {
		return nil // an answer in another format says nothing that can be acted on
	}
	return fmt.Errorf("the collector rejected %s spans: %.200q", answer.PartialSuccess.RejectedSpans, answer.PartialSuccess.ErrorMessage)
}

// Shutdown implements [sdk.SpanExporter].
func (e *exporter) Shutdown(context.Context) error {
	e.cancel()
	e.client.CloseIdleConnections()
	return nil
}
