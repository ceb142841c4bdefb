package install

import (
	"context"
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
)

// prepare checks versions and values before the first write. It returns the image, or "" for a
// package without one.
func (c *installCommand) prepare(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, old corev1alpha1.GenericPackage, want *desired.Package, values *desired.Values,
) (image string, err error) {
	if want.Ref == nil {
		return want.Image, nil
	}
	if old != nil && !c.choice.Given() && desired.SamePackage(old.PackageSpec().PackageRef, want.Ref) {
		want.Ref = old.PackageSpec().PackageRef // as with an image, fields without a flag stay
	}
	target := want.Target
	if old != nil {
		target = old.PackageSpec().TargetRef
	}

	choose := desired.ChooserFor(cl, t.Namespace).At(target)
	if c.follows, err = desired.NameFor(old, want.Ref); err != nil {
		return "", err
	}
	found, err := choose.MustChoose(ctx, c.follows, choose.RequestFor(ctx, old, want.Ref, c.follows))
	if err != nil {
		return "", err
	}

	// The manager would report an unknown override only after the change.
	if err := desired.CheckDependencies(&found.Version().Version, want.Overrides); err != nil {
		return "", fmt.Errorf("%s: %w", c.follows, err)
	}
	return found.Version().Version.Image, desired.CheckValues(ctx, t, found, old, want, values)
}
