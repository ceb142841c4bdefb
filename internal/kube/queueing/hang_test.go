package queueing

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/util/workqueue"

	"lockstep.run/lockstep/internal/limits"
)

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
