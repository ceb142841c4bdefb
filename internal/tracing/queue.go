package tracing

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/metrics"
)

// Values of the label reason of metrics.SpansDropped.
const (
	droppedQueueFull = "queue_full"
	droppedNotTaken  = "export_failed"
)

// queue passes ended spans to a processor, of which at most limits.TraceQueue wait. Further ones are dropped, counted, and logged at
// most once in limits.TraceLogInterval. The queue of the processor is as long, and is never full: what it drops it does not report.
type queue struct {
	sdktrace.SpanProcessor
	log logr.Logger
	now func() time.Time
	// waiting counts the spans that are not exported yet.
	waiting atomic.Int64

	mu sync.Mutex
	// dropped counts the spans since the last line of the log.
	dropped int
	logged  time.Time
}

// OnEnd waits for nothing.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.waiting.Add(1) <= limits.TraceQueue {
		q.SpanProcessor.OnEnd(s)
		return
	}
	q.waiting.Add(-1)
	q.drop()
}

func (q *queue) drop() {
	metrics.SpansDropped.Add(droppedQueueFull)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped++
	if now := q.now(); q.logged.IsZero() || now.Sub(q.logged) >= limits.TraceLogInterval {
		q.log.Info("the collector of traces is too slow: spans are dropped, since as many as may wait do", "dropped", q.dropped, "waiting", limits.TraceQueue)
		q.logged, q.dropped = now, 0
	}
}

// exported makes room for as many spans.
func (q *queue) exported(spans int) { q.waiting.Add(-int64(spans)) }
