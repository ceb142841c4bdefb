package tracing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/metrics"
	"lockstep.run/lockstep/internal/version"
)

// scope names what makes the spans.
const scope = "lockstep.run/lockstep"

// Tracer exports the spans of revisions.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	// sampler has the sampler of the environment, and no exporter.
	sampler trace.Tracer
}

// Endpoint returns the collector that the standard variables of OpenTelemetry name; empty for none.
func Endpoint() (string, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return "", nil
	}
	const ofTraces, ofAll = "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"
	variable := ofTraces + "ENDPOINT"
	if os.Getenv(variable) == "" {
		variable = ofAll + "ENDPOINT"
	}
	endpoint := os.Getenv(variable)
	if endpoint == "" {
		return "", nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		// It is not quoted: it may hold credentials.
		return "", fmt.Errorf("%s: want the URL of a collector, such as http://collector.observability:4318, without credentials, which belong into %sHEADERS", variable, ofAll)
	}
	if protocol := cmp.Or(os.Getenv(ofTraces+"PROTOCOL"), os.Getenv(ofAll+"PROTOCOL"), "http/protobuf"); protocol != "http/protobuf" {
		return "", fmt.Errorf("%sPROTOCOL %q: want http/protobuf, which collectors have on port 4318", ofAll, protocol)
	}
	return u.Scheme + "://" + u.Host, nil
}

// New returns what exports to the collector that the environment names.
func New(ctx context.Context, log logr.Logger) (*Tracer, error) {
	otel.SetLogger(logr.Discard()) // it quotes headers and URLs that it cannot read, with their credentials
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.V(1).Info("a problem of tracing", "reason", conditions.Message(err.Error())) }))
	to, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "lockstep-manager"), attribute.String("service.version", version.Get())), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	waiting := &queue{log: log, now: time.Now}
	waiting.SpanProcessor = sdktrace.NewBatchSpanProcessor(&exporter{SpanExporter: to, log: log, exported: waiting.exported}, sdktrace.WithMaxQueueSize(limits.TraceQueue))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(about), sdktrace.WithIDGenerator(derived{}), sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithSpanProcessor(waiting))
	return &Tracer{
		provider: provider, tracer: provider.Tracer(scope, trace.WithInstrumentationVersion(version.Get())),
		sampler: sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(derived{})).Tracer(scope),
	}, nil
}

// Close exports what waits, for limits.TraceFlush at most.
func (t *Tracer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), limits.TraceFlush)
	defer cancel()
	_ = t.provider.Shutdown(ctx)
}

// export hands over spans of a revision, and waits for nothing. No time is later than now.
func (t *Tracer) export(set corev1alpha1.GenericObjectSet, spans []span, now time.Time) {
	id := traceID(set.GetUID())
	if len(spans) == 0 || !t.sampled(id) {
		return
	}
	attributes := attributesOf(set)
	for i := range spans {
		s := &spans[i]
		ctx := with(context.Background(), id, spanID(set.GetUID(), s.key))
		if s.parent != "" {
			ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: id, SpanID: spanID(set.GetUID(), s.parent), TraceFlags: trace.FlagsSampled,
			}))
		}
		start, end := clamp(set, s.start, now), clamp(set, s.end, now)
		_, exported := t.tracer.Start(ctx, s.name, trace.WithTimestamp(start), trace.WithAttributes(attributes...), trace.WithAttributes(s.attributes...))
		if s.failed != "" {
			exported.SetStatus(codes.Error, s.failed)
		}
		exported.End(trace.WithTimestamp(later(end, start)))
	}
}

// clamp returns a time between the earliest load of a revision and now: a status may say anything.
func clamp(set corev1alpha1.GenericObjectSet, at, now time.Time) time.Time {
	at = later(at, set.GetCreationTimestamp().Add(-limits.TraceLoad))
	if at.After(now) {
		return now
	}
	return at
}

// sampled asks the sampler of the environment about a trace. Those that sample a share go by the second half of the ID, which begins with
// the same bits in each UID: the halves change places.
func (t *Tracer) sampled(id trace.TraceID) bool {
	var turned trace.TraceID
	copy(turned[:8], id[8:])
	copy(turned[8:], id[:8])
	_, s := t.sampler.Start(with(context.Background(), turned, trace.SpanID{1}), nameRollout)
	return s.SpanContext().IsSampled()
}

// traceID returns the UID of a revision, which has as many bytes.
func traceID(uid types.UID) (id trace.TraceID) {
	raw, err := hex.DecodeString(strings.ReplaceAll(string(uid), "-", ""))
	if err != nil || len(raw) != len(id) {
		sum := sha256.Sum256([]byte(uid))
		raw = sum[:]
	}
	copy(id[:], raw)
	return id
}

// spanID derives the ID of a span, so that two leaders export the same one.
func spanID(uid types.UID, key string) (id trace.SpanID) {
	sum := sha256.Sum256([]byte(string(uid) + " " + key))
	copy(id[:], sum[:])
	return id
}

type idsKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

func with(ctx context.Context, t trace.TraceID, s trace.SpanID) context.Context {
	return context.WithValue(ctx, idsKey{}, ids{t, s})
}

// derived returns the IDs that the context has.
type derived struct{}

// NewIDs returns the IDs of the first span of a trace.
func (derived) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	of, _ := ctx.Value(idsKey{}).(ids)
	return of.trace, of.span
}

// NewSpanID returns the ID of a further span.
func (derived) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	of, _ := ctx.Value(idsKey{}).(ids)
	return of.span
}

// exporter logs when a collector begins to fail, and when it takes spans again. It exports one batch at a time.
type exporter struct {
	sdktrace.SpanExporter
	log logr.Logger
	// exported is called with the number of spans of each batch, also of one that is dropped.
	exported func(spans int)
	dropped  int
}

// ExportSpans drops what the collector does not take.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.exported(len(spans))
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && e.dropped == 0:
		e.log.Info("the collector of traces takes no spans, which are dropped", "reason", conditions.Message(err.Error()))
	case err == nil && e.dropped > 0:
		e.log.Info("the collector of traces takes spans again", "dropped", e.dropped)
		e.dropped = 0
	}
	if err != nil {
		e.dropped += len(spans)
		metrics.SpansDropped.AddMany(len(spans), droppedNotTaken)
	}
	return nil
}
