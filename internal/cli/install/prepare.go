package install

import (
	"context"
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
)

// prepare checks versions and values before anything is written. It returns the image, "" for one without an image.
func (c *installCommand) prepare(
	ctx context.Context, cl *cluster.Cluster, t progress.Target, old corev1alpha1.GenericPackage, want *desired.Package, values *desired.Values,
) (image string, err error) {
	if want.Ref == nil {
		return want.Image, nil
	}
	if old != nil && !c.choice.Given() && old.PackageSpec().PackageRef != nil && old.PackageSpec().PackageRef.Name == want.Ref.Name {
		want.Ref = old.PackageSpec().PackageRef // as with an image, what no flag names stays
	}
	target := want.Target
	if old != nil {
		target = old.PackageSpec().TargetRef
	}
	found, err := desired.ChooserFor(cl, t.Namespace).At(target).MustChoose(ctx, want.Ref.Name, desired.RequestFor(old, want))
	if err != nil {
		return "", err
	}
	if err := desired.CheckDependencies(&found.Version().Version, want.Dependencies); err != nil {
		return "", fmt.Errorf("%s: %w", want.Ref.Name, err)
	}
	return found.Version().Version.Image, desired.CheckValues(ctx, cl, t, found, old, want, values)
}
