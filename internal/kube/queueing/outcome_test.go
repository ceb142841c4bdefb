package queueing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

func TestOutcome(t *testing.T) {
	t.Parallel()
	failed := errors.New("no")
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusConflict, Message: `admission webhook "a.b.c" denied the request: no`}}
	fieldConflict := apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}}, "of another manager")
	quota := apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "small", errors.New("modified"))
	for name, tc := range map[string]struct {
		err  error
		want time.Duration
		fail error
	}{
		"done":           {want: time.Second},
		"failed":         {err: failed, fail: failed},
		"conflict":       {err: fmt.Errorf("write: %w", apierrors.NewConflict(schema.GroupResource{}, "a", nil)), want: limits.ConflictRetry},
		"exists already": {err: apierrors.NewAlreadyExists(schema.GroupResource{}, "a"), want: limits.ConflictRetry},
		"field conflict": {err: fieldConflict, fail: fieldConflict},
		"webhook denial": {err: fmt.Errorf("write: %w", denied), fail: denied},
		"a quota":        {err: fmt.Errorf("write: %w", quota), fail: quota},
		"not leading":    {err: fmt.Errorf("write: %w", leadership.ErrNotLeading), want: limits.LeaseRetry},
	} {
		var o Outcome
		for _, d := range []time.Duration{time.Minute, time.Second, time.Hour} {
			o.Requeue(d)
		}
		if got, err := o.Result(t.Context(), tc.err); got.RequeueAfter != tc.want || !errors.Is(err, tc.fail) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	var o Outcome
	if got, _ := o.Result(t.Context(), nil); got.RequeueAfter != 0 {
		t.Errorf("no work is due, and it is requeued after %v", got.RequeueAfter)
	}
	if o.Requeue(-time.Second); o.After <= 0 {
		t.Errorf("an overdue request is requeued after %v", o.After)
	}
}

// The report has the error of the step that failed, also if it panicked, unless a write raced.
func TestRun(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		step     func(context.Context) error
		reported string
		fails    bool
	}{
		"all succeed":    {func(context.Context) error { return nil }, "reported <nil>, last step true", false},
		"one is refused": {func(context.Context) error { return refused }, "reported refused, last step false", true},
		"one panics": {func(context.Context) error { panic("of a secret") },
			"reported a reconcile failed by a defect of this engine, please report it: its text is left out, because it can hold a sensitive value, last step false", true},
		"one ends it": {func(context.Context) error { return fmt.Errorf("enough: %w", ErrEnd) }, "reported <nil>, last step false", false},
		"one raced":   {func(context.Context) error { return apierrors.NewConflict(schema.GroupResource{}, "a", nil) }, "", false},
	} {
		got, last := "", false
		var o Outcome
		_, err := o.Run(t.Context(), func(_ context.Context, failed error) error {
			got = fmt.Sprintf("reported %v, last step %t", failed, last)
			return nil
		}, tc.step, func(context.Context) error { last = true; return nil })
		if got != tc.reported || (err != nil) != tc.fails {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// The failure of a step decides the result, also if the write of the report raced.
func TestRunWhereTheReportRaces(t *testing.T) {
	t.Parallel()
	refused, conflict := errors.New("refused"), apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	for name, tc := range map[string]struct {
		failed, fail error
		want         time.Duration
	}{
		"all succeed":    {nil, nil, limits.ConflictRetry},
		"one is refused": {refused, refused, 0},
	} {
		var o Outcome
		got, err := o.Run(t.Context(), func(context.Context, error) error { return conflict }, func(context.Context) error { return tc.failed })
		if got.RequeueAfter != tc.want || !errors.Is(err, tc.fail) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	var f Failures
	failed, start := errors.New("no"), time.Unix(0, 0)
	for i, tc := range []struct {
		at      time.Duration
		failed  error
		blocked bool
		want    bool
	}{
		{0, nil, false, false},
		{0, failed, false, false},
		{time.Second, failed, true, true},
		{limits.ErrorsUnreported, failed, false, true},
		{limits.ErrorsUnreported, nil, false, false},
		{limits.ErrorsUnreported + time.Second, failed, false, false},
	} {
		require.Equal(t, tc.want, f.Note(start.Add(tc.at), tc.failed, tc.blocked), fmt.Sprintf("%d: reported", i))
	}
}

// An event whose objects cannot be listed is handled again until they can, or the controller has
// ended; a panic is not.
func TestChangesAreRepeated(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		fails  func(calls int) error
		cancel bool
		want   int
	}{
		"it works":          {func(int) error { return nil }, false, 1},
		"the third time":    {func(calls int) error { return map[bool]error{true: errors.New("no list")}[calls < 3] }, false, 3},
		"a panic":           {func(int) error { panic("malformed") }, false, 1},
		"the cache stopped": {func(int) error { return errors.New("no list") }, true, 1},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				calls := 0
				handler := Changes(func(_ context.Context, before, after client.Object) error {
					if calls++; before != nil || after.GetName() != "a" {
						t.Errorf("%v became %v", before, after)
					}
					if tc.cancel {
						cancel()
					}
					return tc.fails(calls)
				})
				pod := &corev1.Pod{}
				pod.Name = "a"
				handler.Create(ctx, event.CreateEvent{Object: pod}, nil)
				time.Sleep(10 * eventRetry)
				if synctest.Wait(); calls != tc.want {
					t.Errorf("handled %d times, want %d", calls, tc.want)
				}
			})
		})
	}
}

// A standby has no caches, and reports nothing.
func TestMetricsBeginWithTheController(t *testing.T) {
	t.Parallel()
	m := &whileStarted{Collector: prometheus.NewGauge(prometheus.GaugeOpts{Name: "objects"})}
	for _, started := range []bool{false, true} {
		m.started.Store(started)
		out := make(chan prometheus.Metric, 1)
		if m.Collect(out); (len(out) > 0) != started {
			t.Errorf("started: %t: %d metrics", started, len(out))
		}
	}
}

// A worker that has had a request for limits.WorkerHung fails the liveness of its process, once the
// stacks are in the log.
func TestHungWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &Queue[string]{}
		var logged []string
		now := time.Now()
		h := &hang[string]{
			queue: q, name: "shop", now: func() time.Time { return now },
			log: funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}),
		}
		alive := func(want bool, when string) {
			t.Helper()
			if err := h.check(nil); (err == nil) != want {
				t.Errorf("%s: %v", when, err)
			}
		}
		alive(true, "before the start")
		queue := q.Fair(0, nil)("", workqueue.DefaultTypedControllerRateLimiter[string]())
		defer queue.ShutDown()
		queue.Add("waits")
		now = now.Add(2 * limits.WorkerHung)
		alive(true, "with a request that waits for a worker")
		request, _ := queue.Get()
		now = time.Now()
		alive(true, "with one that is worked on")
		now = now.Add(limits.WorkerHung + time.Second)
		alive(false, "with one that is worked on for too long")
		alive(false, "when asked again")
		if len(logged) != 1 || !strings.Contains(logged[0], "TestHungWorker") || !strings.Contains(logged[0], `"error"="a worker of the controller shop has had waits for 5m1s without progress`) {
			t.Errorf("the log has %q, want the stacks once", logged)
		}
		Progress(t.Context())
		alive(false, "after progress of another request")
		Progress(q.WithProgress(t.Context(), request))
		now = time.Now()
		alive(true, "after progress")
		now = now.Add(limits.WorkerHung + time.Second)
		alive(false, "without further progress")
		queue.Done(request)
		Progress(q.WithProgress(t.Context(), request))
		alive(true, "when it is done")
	})
}
