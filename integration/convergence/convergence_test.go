package convergence_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

const (
	// rounds is how many there are without LOCKSTEP_CONVERGENCE.
	rounds = 1
	// steps is the number of changes in a round, and healthy the number of changes at its end
	// that cannot block a package.
	steps, healthy = 45, 15
	// quiet is the time without requests of the manager that ends a round. It is longer than the
	// manager holds back any request.
	quiet = 2500 * time.Millisecond
)

// TestConvergence plays random rounds. LOCKSTEP_CONVERGENCE is the duration, and LOCKSTEP_SEED
// the seed of the first round; each following round increments it. Without both, the rounds are
// the same each time, so that a failure is due to the change under test.
func TestConvergence(t *testing.T) {
	seed := uint64(1)
	if os.Getenv("LOCKSTEP_CONVERGENCE") != "" {
		seed = uint64(time.Now().UnixNano())
	}
	if given := os.Getenv("LOCKSTEP_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
	}
	end := time.Now()
	if given := os.Getenv("LOCKSTEP_CONVERGENCE"); given != "" {
		length, err := time.ParseDuration(given)
		require.NoError(t, err)
		end = end.Add(length)
		env.WaitCollector(t)
	}
	t.Logf("LOCKSTEP_SEED=%d", seed)
	images, version := push(t), serverVersion(t)
	for i := 0; (i < rounds || time.Now().Before(end)) && !t.Failed(); i++ {
		t.Run(fmt.Sprintf("seed-%d", seed+uint64(i)), func(t *testing.T) {
			w := newWorld(t, seed+uint64(i), images, version, os.Getenv("LOCKSTEP_CONVERGENCE") != "")
			t.Cleanup(func() { w.end(false) })
			w.round(t)
		})
	}
}

func serverVersion(t *testing.T) string {
	t.Helper()
	asking, err := discovery.NewDiscoveryClientForConfig(env.Config())
	require.NoError(t, err)
	info, err := asking.ServerVersion()
	require.NoError(t, err)
	return info.GitVersion
}

// round makes random changes and judges the result. Then it changes the desired state and
// reverts that at once, and judges the result. At the end it removes all objects and judges
// that, too.
func (w *world) round(t *testing.T) {
	for i := range steps {
		if i == steps-healthy {
			require.NoError(t, w.heal(t.Context()))
		}
		w.step(t)
	}
	w.note("the last change was made")
	w.start()
	if !w.converge(t, "the end is not the last desired state") {
		return
	}
	w.rebound(t)
	w.start()
	if !w.converge(t, "the end is not the former state that is desired again") {
		return
	}
	for _, s := range w.subjects {
		require.NoError(t, s.remove(t.Context(), false, metav1.DeletePropagationBackground))
	}
	w.note("everything is deleted")
	if w.converge(t, "something is left") {
		w.clear(t)
	}
}

// converge waits until the observed state is the desired one and the manager has sent no
// request for as long as quiet; then it checks both once more.
func (w *world) converge(t *testing.T, otherwise string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.await(ctx); err != nil {
		w.fail(t, otherwise, err)
		return false
	}
	audit, err := env.Audit()
	require.NoError(t, err)
	from, err := audit.Mark(ctx)
	require.NoError(t, err)
	requests := []sandbox.Filter{
		sandbox.ByUser(harness.ManagerUser()), sandbox.Not(sandbox.ByVerb("watch")), sandbox.Not(sandbox.ByResource("leases.coordination.k8s.io")),
	}
	if _, err := audit.Settled(ctx, from, quiet, requests...); err != nil {
		w.fail(t, "requests are made all the time", err)
		return false
	}
	from, err = audit.Mark(ctx)
	require.NoError(t, err)
	err = w.judge(ctx)
	late, auditErr := audit.Since(ctx, from, requests...)
	require.NoError(t, auditErr)
	switch {
	case err != nil:
		w.fail(t, "it was so, and is not any more: "+otherwise, err)
	case w.manager.Exited():
		w.fail(t, "the manager has ended by itself", fmt.Errorf("see its log"))
	case len(late) > 0:
		var lines []string
		for _, e := range late {
			lines = append(lines, fmt.Sprintf("%s %s (%d)", e.Verb, e.RequestURI, e.Code))
		}
		w.fail(t, "requests after it was quiet", fmt.Errorf("%s", strings.Join(lines, "\n")))
	default:
		return true
	}
	return false
}

// await waits until all subjects are in their desired state, or returns which is not.
func (w *world) await(ctx context.Context) error {
	var last error
	for ctx.Err() == nil {
		err := w.judgeAgain(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err // more telling than that time is up
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return last
}

// judgeAgain creates Packages that can be created by now, and judges.
func (w *world) judgeAgain(ctx context.Context) error {
	for _, s := range w.subjects {
		if err := s.create(ctx); err != nil {
			return err
		}
	}
	return w.judge(ctx)
}
