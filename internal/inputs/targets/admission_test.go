package targets

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

// Only a few large answers are read at a time, one per namespace. Small ones never wait.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := queueing.NewSemaphore(targetsAtATime, 1)
		large := func(namespace string) *answer {
			ctx, cancel := context.WithCancelCause(t.Context())
			return &answer{
				ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("a", 2*targetFreeLine))), bytes: limits.TargetResponseBytes, values: 10,
				admission: &admission{of: all, namespace: namespace, ctx: ctx, cancel: cancel},
			}
		}
		read := func(a *answer) chan error {
			done := make(chan error, 1)
			go func() {
				_, err := io.ReadAll(a)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		one, same, two, three := large("one"), large("one"), large("two"), large("three")
		reads := []chan error{read(one), read(same), read(two), read(three)}
		for i, want := range []int{1, 0, 1, 0} {
			if len(reads[i]) != want {
				t.Errorf("answer %d: %d are read, want %d", i, len(reads[i]), want)
			}
		}
		small := large("one")
		small.ReadCloser = io.NopCloser(strings.NewReader("small"))
		if err := <-read(small); err != nil {
			t.Errorf("a small one waits: %v", err)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		if synctest.Wait(); len(reads[1])+len(reads[3]) != 0 {
			t.Error("the next one is read while this one is decoded")
		}
		time.Sleep(time.Second)
		if synctest.Wait(); len(reads[1])+len(reads[3]) != 1 {
			t.Error("the next one is not read afterwards")
		}
		time.Sleep(3 * targetDecodeTime) // the others are not closed
		if synctest.Wait(); len(reads[1])+len(reads[3]) != 2 || !errors.Is(context.Cause(two.admission.ctx), errSlow) {
			t.Errorf("one that does not end stays admitted: %v", context.Cause(two.admission.ctx))
		}
		for _, a := range []*answer{same, two, three} {
			_ = a.Close()
		}
	})
}
