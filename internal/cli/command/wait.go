package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
)

var (
	// ErrTimeout is the cause if a wait takes too long.
	ErrTimeout     = errors.New("timeout")
	errInterrupted = errors.New("interrupted")
)

const (
	// WaitTimeout is the default progress deadline.
	WaitTimeout = 10 * time.Minute
	// RefineInterval is the time between polls of objects that are not watched.
	RefineInterval = 3 * time.Second
)

// Waiter follows a package until it reaches the state that a command waits for.
type Waiter struct {
	Streams genericiooptions.IOStreams
	Cluster *cluster.Cluster
	Target  progress.Target
	// Uid guards against a package that was deleted and created again.
	Uid types.UID

	// Failing starts an error, as in "is not available".
	Failing string
	// Before is the state that the first line is compared with.
	Before  progress.State
	Assess  func(progress.State, time.Time) progress.Outcome
	Timeout time.Duration

	// Refine adds the unwatched part of the state to a Snapshot. It may be nil.
	Refine func(context.Context, progress.Snapshot) progress.Snapshot
}

// Run follows the package until it is done, a timeout, or an interrupt. Any outcome but success is
// an error.
func (w *Waiter) Run(ctx context.Context) (progress.State, time.Duration, error) {
	begin := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	observer := w.Cluster.Observe(ctx, w.Target, w.Uid)
	timeout := time.NewTimer(w.Timeout)
	defer timeout.Stop()
	again := time.NewTimer(w.Timeout)
	defer again.Stop()
	quiet := time.NewTicker(progress.UnnoticedAfter)
	defer quiet.Stop()
	unnoticed := ""
	shown := w.Before

	state := progress.State{Target: w.Target}
	var outcome progress.Outcome
	var err error
	for !outcome.Done && err == nil {
		select {
		// Each event, and each end of a pause, leads to one assessment.
		case <-observer.Changed():
			quiet.Reset(progress.UnnoticedAfter)
			unnoticed = ""
		case <-again.C:
		case <-quiet.C:
			unnoticed = w.unnoticed(ctx, state)
		case <-timeout.C:
			err = ErrTimeout
			continue
		case <-ctx.Done():
			err = errInterrupted
			continue
		}

		snap, ok, failure := observer.Snapshot(ctx)
		if failure != nil || !ok {
			err = failure
			continue
		}
		now := time.Now()
		if w.Refine != nil && snap.Package != nil {
			snap = w.Refine(ctx, snap)
			again.Reset(RefineInterval)
		}

		state = progress.Of(snap)
		state.Unnoticed = unnoticed
		outcome = w.Assess(state, now)
		if outcome.Again > 0 {
			again.Reset(outcome.Again)
		}
		shown = w.show(shown, state, outcome, now.Sub(begin))
	}

	elapsed := time.Since(begin)
	delay := ""
	// Only an unreported cause is worth the request for the Lease. The context of an interrupt is
	// over.
	if errors.Is(err, ErrTimeout) && progress.Unreported(state) {
		delay = w.Cluster.Delay(context.WithoutCancel(ctx))
	}

	return state, elapsed, w.failure(state, outcome, elapsed, delay, err)
}

// unnoticed returns why nothing might have changed for a while: no manager runs, or none has
// reported on the package. It costs one request. While the connection is lost, that is reported.
func (w *Waiter) unnoticed(ctx context.Context, s progress.State) string {
	if s.Lost != "" {
		return ""
	}

	ctx, cancel := context.WithTimeout(ctx, RefineInterval)
	defer cancel()
	if silence := w.Cluster.Silence(ctx); silence > 0 {
		return fmt.Sprintf("no manager has renewed its Lease for %s: is lockstep-manager running?", duration.HumanDuration(silence))
	}
	// A deletion that waits for others' finalizers reports nothing.
	held := s.Deleting && len(s.Finalizers) > 0
	if !s.Observed && !held {
		return progress.Unnoticed
	}
	return ""
}

// failure is the error of a wait; nil after a success. delay explains why the manager might have
// reported nothing.
func (w *Waiter) failure(s progress.State, v progress.Outcome, elapsed time.Duration, delay string, err error) error {
	failing := w.Target.String() + " " + w.Failing
	see := "\nSee: kubectl package status " + w.Target.Flags()
	switch {
	case errors.Is(err, ErrTimeout):
		culprit := progress.Culprit(s)
		if delay != "" {
			culprit += "; " + delay
		}
		return fmt.Errorf("%s after %s: %s%s", failing, progress.Elapsed(elapsed), culprit, see)
	case errors.Is(err, errInterrupted):
		return fmt.Errorf("%s: interrupted; it continues in the cluster%s", failing, see)
	case err != nil:
		return err
	case v.Failed && s.Gone:
		return fmt.Errorf("%s: %s", failing, v.Reason)
	case v.Failed:
		return fmt.Errorf("%s: %s%s", failing, v.Reason, see)
	}

	return nil
}

// show writes a line for each transition, for people on standard error, or as an event for programs.
// It returns the state to compare the next one with.
func (w *Waiter) show(last, s progress.State, outcome progress.Outcome, elapsed time.Duration) progress.State {
	shown := s
	if outcome.Failed || outcome.Again > 0 {
		shown.PullError, shown.Invalid, shown.Stalled = "", "", "" // the error of the command includes them
	}
	for _, line := range progress.Lines(last, shown) {
		if out, is := w.Streams.Out.(*events); is {
			out.transition(s, line)
		} else {
			fmt.Fprintf(w.Streams.ErrOut, "%7s  %s\n", progress.Elapsed(elapsed), line)
		}
	}

	return progress.Remember(last, shown)
}

const (
	// pollInterval is the time between two reads of Poll.
	pollInterval = 500 * time.Millisecond
	// endingWait is the rest of a wait in which the client may refuse to start a request.
	endingWait = 400 * time.Millisecond
)

// Poll calls done until it returns true, or until --timeout passes, which is the error ErrTimeout.
func (c *Command) Poll(ctx context.Context, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, ErrTimeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, done)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Await polls an object until done returns true. Its error has failing, such as "is not rolled
// out", and the cause.
func (c *Command) Await(ctx context.Context, cl *cluster.Cluster, obj client.Object, name, failing string, cause func() string, done func() (bool, error)) error {
	err := c.Poll(ctx, func(ctx context.Context) (bool, error) {
		if err := cl.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			if end, ok := ctx.Deadline(); ok && time.Until(end) < endingWait && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
				<-ctx.Done() // the client does not start a request that cannot end in time
				return false, ctx.Err()
			}
			return false, cl.Explain("cannot watch "+name, err)
		}
		return done()
	})
	switch {
	case errors.Is(err, ErrTimeout):
		return fmt.Errorf("%s %s after %s: %s", name, failing, progress.Elapsed(c.Timeout), cause())
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: interrupted; the cluster continues", name)
	}

	return err
}
