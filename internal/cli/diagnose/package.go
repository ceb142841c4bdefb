package diagnose

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
)

// Package finds out why a package in a cluster is not available.
func Package(ctx context.Context, cl *cluster.Cluster, target progress.Target, pkg corev1alpha1.GenericPackage) (*Diagnosis, error) {
	all, err := cl.AnyKind()
	if err != nil {
		return nil, err
	}
	return PackageBy(ctx, cl, all, target, pkg)
}

// PackageBy is Package with a given client for all kinds, so that several searches share its
// discovery.
func PackageBy(
	ctx context.Context, cl *cluster.Cluster, all client.Client, target progress.Target, pkg corev1alpha1.GenericPackage,
) (*Diagnosis, error) {
	snap, deployment, err := cl.Snapshot(ctx, target, pkg)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, t progress.Target) (progress.Snapshot, corev1alpha1.GenericObjectDeployment, error) {
		pkg, err := cl.Read(ctx, t)
		// The user may not read each package.
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return progress.Snapshot{Target: t}, nil, nil
		}
		if err != nil {
			return progress.Snapshot{}, nil, cl.Explain("cannot read "+t.String(), err)
		}
		return cl.Snapshot(ctx, t, pkg)
	}
	d, err := Explain(ctx, all, snap, deployment, read, func(pkg corev1alpha1.GenericPackage) (client.Client, error) {
		return cl.AnyKindAt(ctx, pkg.GetNamespace(), pkg.PackageSpec().TargetRef)
	})
	if err != nil {
		return nil, cl.Explain("cannot explain "+target.String(), err)
	}

	// Only an unknown cause is worth the request for the Lease.
	if d.Reason == ReasonPackage && progress.Unreported(progress.Of(snap)) {
		if delay := cl.Delay(ctx); delay != "" {
			d.Cause += "; " + delay
		}
	}

	return d, nil
}
