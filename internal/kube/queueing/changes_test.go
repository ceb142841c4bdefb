package queueing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

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
