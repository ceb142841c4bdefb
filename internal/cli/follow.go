package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// view shows a State to a person.
type view interface {
	// show is called for every State, with the time since the beginning.
	show(s progress.State, elapsed time.Duration)
	// close draws the last picture.
	close(s progress.State, elapsed time.Duration)
}

// newView returns a live view on a terminal and lines elsewhere. before is what
// was known at the beginning.
func newView(streams genericiooptions.IOStreams, title string, before progress.State) view {
	if terminal.IsTerminal(streams.ErrOut) {
		return newLive(streams.ErrOut, title)
	}
	return &plain{out: streams.ErrOut, last: before}
}

var (
	errTimeout     = errors.New("timeout")
	errInterrupted = errors.New("interrupted")
)

// refineInterval is the time between polls of what is not watched.
const refineInterval = 3 * time.Second

// following is one wait for a package.
type following struct {
	cluster *cluster.Cluster
	target  progress.Target
	uid     types.UID
	judge   func(progress.State, time.Time) progress.Verdict
	view    view
	timeout time.Duration
	// refine, which may be nil, adds what is not watched to a Snapshot.
	refine func(context.Context, progress.Snapshot) progress.Snapshot
}

// run shows a package until the judge's last word, the timeout, or an
// interrupt, which are the errors errTimeout and errInterrupted. It returns the
// last State and the time that it took.
func (f following) run(ctx context.Context) (progress.State, progress.Verdict, time.Duration, error) {
	begin := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	observer := f.cluster.Observe(ctx, f.target, f.uid)
	timeout := time.NewTimer(f.timeout)
	defer timeout.Stop()
	again := time.NewTimer(f.timeout)
	defer again.Stop()

	state := progress.State{Target: f.target}
	var verdict progress.Verdict
	var err error
	for !verdict.Done && err == nil {
		select {
		case <-observer.Changed():
		case <-again.C:
		case <-timeout.C:
			err = errTimeout
			continue
		case <-ctx.Done():
			err = errInterrupted
			continue
		}
		snap, ok, failure := observer.Snapshot(ctx)
		if failure != nil {
			err = failure
			continue
		}
		if !ok {
			continue
		}
		now := time.Now()
		if f.refine != nil && snap.Package != nil {
			snap = f.refine(ctx, snap)
			again.Reset(refineInterval)
		}
		if snap.Package == nil {
			state = progress.Ended(state)
		} else {
			state = progress.Of(snap)
		}
		state.Unnoticed = !state.Gone && !state.Deleting && !state.Observed && now.Sub(begin) >= progress.UnnoticedAfter
		verdict = f.judge(state, now)
		if verdict.Again > 0 && !state.Unnoticed {
			again.Reset(verdict.Again)
		}
		f.view.show(state, now.Sub(begin))
	}
	elapsed := time.Since(begin)
	f.view.close(state, elapsed)
	return state, verdict, elapsed, err
}

// ended turns the end of a wait that is no success into an error. failing says
// what it is, as in "package shop/web is not available".
func ended(failing string, t progress.Target, s progress.State, v progress.Verdict, elapsed time.Duration, err error) error {
	see := "\nSee: kubectl package status " + t.Flags()
	switch {
	case errors.Is(err, errTimeout):
		return fmt.Errorf("%s after %s: %s%s", failing, progress.Elapsed(elapsed), progress.Culprit(s), see)
	case errors.Is(err, errInterrupted):
		return fmt.Errorf("%s: interrupted; the cluster goes on with it%s", failing, see)
	case err != nil:
		return err
	case v.Failed && s.Gone:
		return fmt.Errorf("%s: %s", failing, v.Reason)
	case v.Failed:
		return fmt.Errorf("%s: %s%s", failing, v.Reason, see)
	}
	return nil
}
