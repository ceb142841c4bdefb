package queueing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/kube/leadership"
	"lockstep.run/lockstep/internal/limits"
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
		if got := f.Note(start.Add(tc.at), tc.failed, tc.blocked); got != tc.want {
			t.Errorf("%d: reported %t, want %t", i, got, tc.want)
		}
	}
}
