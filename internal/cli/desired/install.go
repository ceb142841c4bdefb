package desired

import (
	"context"
	"fmt"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// Install writes values and package, and follows the rollout. old is nil for a new package. The
// values come first, because the manager would report a package with a missing source. They are
// deleted if the package is refused.
func (want Package) Install(
	ctx context.Context, c *command.Command, cl *cluster.Cluster, target progress.Target, old corev1alpha1.GenericPackage, values *Values,
) error {
	if old != nil {
		if err := Changeable(target, old, want); err != nil {
			return err
		}
	}
	var writer *valuesWriter
	if values != nil {
		writer = &valuesWriter{cluster: cl, target: target, values: values}
		want.Values = values.Source(target)
		if err := writer.write(ctx); err != nil {
			return err
		}
	}

	var done Applied
	var err error
	if old != nil {
		done, err = Change(ctx, cl, target, old, want)
	} else {
		done, err = want.create(ctx, cl, target)
	}
	if err != nil {
		// The request runs without the cancellation of an interrupt, because the interrupt is often the
		// reason.
		if writer != nil && writer.created {
			_ = cl.Delete(context.WithoutCancel(ctx), writer.object)
		}
		return err
	}

	// The owner reference needs the UID of the package, so it is set afterwards.
	if writer != nil {
		if err := writer.own(ctx, done.Pkg); err != nil {
			return err
		}
		if writer.changed {
			if err := done.noticed(ctx, cl, target); err != nil {
				return err
			}
		}
	}

	fmt.Fprintln(c.Streams.Out, terminal.Line(target.String()+" "+done.What))
	if !c.Wait {
		return nil
	}
	return done.Follow(ctx, c, cl, target)
}

// noticed requests a retry for changed values, because they alone do not change the generation of the
// package. The status of the retry shows when the manager has looked at the package again.
func (done *Applied) noticed(ctx context.Context, cl *cluster.Cluster, t progress.Target) (err error) {
	if done.What == "is already up to date" {
		done.What = "changed: values"
	} else {
		done.What += ", values"
	}
	if done.Retry == "" && !done.Pkg.PackageSpec().Paused {
		done.Retry, err = RequestRetry(ctx, cl, t, done.Pkg)
	}
	return err
}

// Follow waits until an applied package is available.
func (done *Applied) Follow(ctx context.Context, c *command.Command, cl *cluster.Cluster, target progress.Target) error {
	w := command.Waiter{
		Streams: c.Streams, Cluster: cl, Target: target, Uid: done.Pkg.GetUID(), Failing: "is not available",
		Before: progress.State{Target: target}, Assess: (&progress.Install{Retry: done.Retry}).Assess, Timeout: c.Timeout,
	}
	if done.Before != nil {
		w.Before = progress.Before(progress.Snapshot{Target: target, Package: done.Before})
	}

	state, elapsed, err := w.Run(ctx)
	if err != nil {
		return err
	}

	what := strings.TrimSpace(state.Package + " " + state.Version)
	if what != "" {
		what += ", "
	}
	fmt.Fprintf(c.Streams.Out, "%s is available: %srevision %d, after %s\n",
		terminal.Line(target.String()), what, state.Revision, progress.Elapsed(elapsed))

	return nil
}
