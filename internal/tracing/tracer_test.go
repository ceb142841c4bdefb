package tracing

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/metrics"
	"lockstep.run/lockstep/internal/testing/collector"
	"lockstep.run/lockstep/internal/testing/metricstest"
)

// tracer exports to an endpoint. The variables are those of the process, so that tests with it run one after the other.
func tracer(t *testing.T, endpoint string, log logr.Logger) *Tracer {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
	tracer, err := New(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// Two leaders export one trace of a revision, in which each span is there once.
func TestLeaders(t *testing.T) {
	c := collector.New(t)
	claimed, succeeded := condition(corev1alpha1.ConditionClaimed, metav1.ConditionTrue, 1), condition(corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, 7)
	waiting := set(claimed, crds(), app(corev1alpha1.PhaseStateProbing, nil))
	done := set(claimed, crds(), app(corev1alpha1.PhaseStateReady, at(7.5)), succeeded)
	done.ResourceVersion = "2"
	for leader := range 2 {
		f := &Follower{Tracer: tracer(t, c.URL, logr.Discard()), Now: func() time.Time { return epoch.Add(time.Minute) }}
		handler := f.handler(t.Context())
		handler.OnAdd(waiting, true)
		if leader == 1 {
			handler.OnUpdate(waiting, done)
		}
		f.Close()
	}
	spans := c.Await(t, func(spans []collector.Span) bool { return len(spans) == 5+5+4 })
	traces := collector.Traces(spans)
	trace := traces["6f9619ff8b864d01b42d00cf4fc964ff"]
	if len(traces) != 1 || len(trace) != 9 {
		t.Fatalf("%d traces, %d spans: %+v", len(traces), len(trace), spans)
	}
	names := map[string]int{}
	for _, s := range trace {
		names[s.Name]++
		if _, there := trace[s.Parent]; !there && s.Name != nameRollout {
			t.Errorf("%s has no parent", s.Name)
		}
		if s.Attributes["lockstep.object_set"] != "shop-1" || s.Attributes["k8s.namespace.name"] != "team" || s.Numbers["lockstep.revision"] != 1 {
			t.Errorf("%s has %v", s.Name, s.Attributes)
		}
		if text := fmt.Sprint(s); strings.Contains(text, "s3cret") {
			t.Errorf("a message is in %s", text)
		}
	}
	if names[nameRollout] != 1 || names[namePhase] != 2 || names[nameLoad] != 1 || names[nameClaim] != 1 || names[nameApply] != 2 || names[nameWait] != 2 {
		t.Error(names)
	}
	if c.Resource["service.name"] != "lockstep-manager" {
		t.Error(c.Resource)
	}
}

// A collector that hangs, or is not there, delays nothing, and no more than limits.TraceQueue spans wait for it.
func TestCollectorsThatFail(t *testing.T) {
	hanging := collector.New(t)
	hanging.Hold()
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing.Close()
	for reason, endpoint := range map[string]string{"hangs": hanging.URL, "refuses": "http://" + refusing.Addr().String()} {
		tracer := tracer(t, endpoint, logr.Discard())
		done := set(crds(), condition(corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, 7))
		begin := time.Now()
		for range 100_000 / 5 {
			tracer.export(done, ended(nil, done), epoch.Add(time.Minute))
		}
		exported := time.Since(begin)
		begin = time.Now()
		tracer.Close()
		closed := time.Since(begin)
		t.Logf("%s: 100,000 spans were handed over in %v, the end took %v", reason, exported, closed)
		if exported > 30*time.Second || closed > limits.TraceFlush+10*time.Second {
			t.Errorf("%s: 100,000 spans took %v, the end %v", reason, exported, closed)
		}
	}
}

// dropped returns how many spans are counted as dropped, by the reason.
func dropped(t *testing.T) map[string]float64 {
	t.Helper()
	by := map[string]float64{}
	for _, c := range metrics.Instruments() {
		for series, value := range metricstest.Values(t, c) {
			if reason, is := strings.CutPrefix(series, "lockstep_trace_spans_dropped_total "); is {
				by[reason] = value
			}
		}
	}
	return by
}

// Each span is exported or counted, by why it was not.
func TestDroppedSpansAreCounted(t *testing.T) {
	const sets = 1000
	c := collector.New(t)
	c.Hold()
	traced := tracer(t, c.URL, logr.Discard())
	done := set(crds(), condition(corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, 7))
	spans := len(ended(nil, done))
	before := dropped(t)
	for range sets {
		traced.export(done, ended(nil, done), epoch.Add(time.Minute))
	}
	full := int(dropped(t)[droppedQueueFull] - before[droppedQueueFull])
	if full == 0 {
		t.Error("nothing is counted")
	}
	c.Release()
	if err := traced.provider.ForceFlush(t.Context()); err != nil {
		t.Error(err)
	}
	failed := int(dropped(t)[droppedNotTaken] - before[droppedNotTaken]) // a slow machine: the collector hung for too long
	c.Await(t, func(got []collector.Span) bool { return len(got) >= sets*spans-full-failed })
	t.Logf("of %d spans %d found no room, and %d were not taken", sets*spans, full, failed)
	traced.Close()

	refused := tracer(t, c.URL+"/elsewhere", logr.Discard())
	before = dropped(t)
	refused.export(done, ended(nil, done), epoch.Add(time.Minute))
	refused.Close()
	after := dropped(t)
	if got := int(after[droppedNotTaken] - before[droppedNotTaken]); got != spans || after[droppedQueueFull] != before[droppedQueueFull] {
		t.Errorf("%d of %d spans are counted that the collector did not take", got, spans)
	}
}

// ignored is a processor of spans.
type ignored struct{ sdktrace.SpanProcessor }

func (ignored) OnEnd(sdktrace.ReadOnlySpan) {}

// Spans for which there is no room are logged once a minute, with their number.
func TestDroppedSpansAreLogged(t *testing.T) {
	var lines []string
	now := epoch
	q := &queue{SpanProcessor: ignored{}, now: func() time.Time { return now }, log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
	end := func(spans int) {
		for range spans {
			q.OnEnd(nil)
		}
	}
	end(limits.TraceQueue)
	if len(lines) > 0 {
		t.Error(lines)
	}
	end(1000)
	now = now.Add(limits.TraceLogInterval - 1)
	end(1000)
	now = now.Add(1)
	end(1)
	if len(lines) != 2 || !strings.Contains(lines[0], `"dropped"=1 `) || !strings.Contains(lines[1], `"dropped"=2000 `) {
		t.Error(lines)
	}
	q.exported(2)
	now = now.Add(time.Hour)
	if end(2); len(lines) != 2 {
		t.Errorf("there is room again: %v", lines)
	}
	if end(1); len(lines) != 3 {
		t.Errorf("there is none again: %v", lines)
	}
}

// A collector that takes nothing is logged once, and so is that it does again.
func TestLog(t *testing.T) {
	lines := make(chan string, 100)
	c := collector.New(t)
	tracer := tracer(t, c.URL+"/elsewhere", funcr.New(func(_, args string) { lines <- args }, funcr.Options{}))
	done := set(crds(), condition(corev1alpha1.ConditionSucceeded, metav1.ConditionTrue, 7))
	for range 3 {
		tracer.export(done, ended(nil, done), epoch.Add(time.Minute))
		if err := tracer.provider.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if line := <-lines; !strings.Contains(line, "takes no spans") || len(lines) > 0 {
		t.Errorf("%s, and %d more", line, len(lines))
	}
	tracer.Close()
}

func TestSampler(t *testing.T) {
	for _, test := range []struct {
		name, arg string
		low, high int
	}{
		{"", "", 1000, 1000}, {"always_off", "", 0, 0}, {"parentbased_traceidratio", "0.25", 150, 350}, {"traceidratio", "0.75", 650, 850},
	} {
		t.Setenv("OTEL_TRACES_SAMPLER", test.name)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", test.arg)
		tracer := tracer(t, "http://127.0.0.1:1", logr.Discard())
		sampled := 0
		for i := range 1000 {
			// As in a UUID of version 4, whose second half begins with the bits 10.
			uid := types.UID(fmt.Sprintf("%08x-8b86-4d01-b42d-00cf4fc964ff", uint32(i)*4294967))
			if tracer.sampled(traceID(uid)) {
				sampled++
			}
		}
		if sampled < test.low || sampled > test.high {
			t.Errorf("%s %s: %d of 1,000", test.name, test.arg, sampled)
		}
		tracer.Close()
	}
}

func TestEndpoint(t *testing.T) {
	for _, test := range []struct {
		environment map[string]string
		want, fails string
	}{
		{},
		{environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318"}, want: "http://otel:4318"},
		{environment: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://otel/v1/traces"}, want: "https://otel"},
		{environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318", "OTEL_SDK_DISABLED": "true"}},
		{environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4318", "OTEL_TRACES_EXPORTER": "none"}},
		{environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "otel:4318"}, fails: "OTEL_EXPORTER_OTLP_ENDPOINT: want the URL"},
		{environment: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a:s3cret@otel:4318"}, fails: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: want the URL"},
		{environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, fails: "want http/protobuf"},
	} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"} {
			t.Setenv(name, test.environment[name])
		}
		got, err := Endpoint()
		if got != test.want || (err == nil) != (test.fails == "") || err != nil && (!strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%v: %q, %v", test.environment, got, err)
		}
	}
}
