// Package collector has a collector of traces for tests: it takes OTLP over HTTP and keeps the spans.
package collector

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxBody bounds what is read of a request.
const maxBody = 8 << 20

// Span is one that was taken.
type Span struct {
	Trace, ID, Parent, Name, Failed string
	Start, End                      time.Time
	Attributes                      map[string]string
	Numbers                         map[string]int64
}

// Collector takes spans.
type Collector struct {
	// URL is the endpoint.
	URL string
	// Resource has the attributes of what sent the last ones.
	Resource map[string]string

	mu      sync.Mutex
	hold    chan struct{}
	asked   chan struct{}
	spans   []Span
	changed chan struct{}
}

// New starts a collector that ends with the test.
func New(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{changed: make(chan struct{}), asked: make(chan struct{}, 1)}
	server := httptest.NewServer(c)
	tb.Cleanup(func() {
		c.Release()
		server.CloseClientConnections()
		server.Close()
	})
	c.URL = server.URL
	return c
}

// Hold makes the collector answer nothing until Release.
func (c *Collector) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == nil {
		c.hold = make(chan struct{})
	}
}

// Release ends Hold.
func (c *Collector) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold != nil {
		close(c.hold)
		c.hold = nil
	}
}

// Asked receives where a request has come.
func (c *Collector) Asked() <-chan struct{} { return c.asked }

// ServeHTTP takes spans.
func (c *Collector) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	select {
	case c.asked <- struct{}{}:
	default:
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil || req.URL.Path != "/v1/traces" {
		http.Error(w, "no spans", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-req.Context().Done():
			return
		}
	}
	message := &coltracepb.ExportTraceServiceRequest{}
	if err := proto.Unmarshal(body, message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.take(message)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) take(message *coltracepb.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range message.GetResourceSpans() {
		c.Resource = map[string]string{}
		for _, attribute := range of.GetResource().GetAttributes() {
			c.Resource[attribute.GetKey()] = attribute.GetValue().GetStringValue()
		}
		for _, in := range of.GetScopeSpans() {
			for _, s := range in.GetSpans() {
				span := Span{
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Name: s.GetName(), Failed: s.GetStatus().GetMessage(),
					Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())), //nolint:gosec // until the year 2262
					Attributes: map[string]string{}, Numbers: map[string]int64{},
				}
				for _, attribute := range s.GetAttributes() {
					span.Attributes[attribute.GetKey()] = attribute.GetValue().GetStringValue()
					span.Numbers[attribute.GetKey()] = attribute.GetValue().GetIntValue()
				}
				c.spans = append(c.spans, span)
			}
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// Await waits until the spans that were taken satisfy a condition, for a minute, and returns them.
func (c *Collector) Await(tb testing.TB, satisfied func([]Span) bool) []Span {
	tb.Helper()
	limit := time.After(time.Minute)
	for {
		c.mu.Lock()
		spans, changed := append([]Span(nil), c.spans...), c.changed
		c.mu.Unlock()
		if satisfied(spans) {
			return spans
		}
		select {
		case <-changed:
		case <-limit:
			tb.Fatalf("not all spans came: %+v", spans)
		case <-tb.Context().Done():
			tb.Fatal("the test ends")
		}
	}
}

// Traces returns the spans of each trace by their IDs: one that was taken twice is the same span.
func Traces(spans []Span) map[string]map[string]Span {
	traces := map[string]map[string]Span{}
	for _, s := range spans {
		if traces[s.Trace] == nil {
			traces[s.Trace] = map[string]Span{}
		}
		traces[s.Trace][s.ID] = s
	}
	return traces
}
