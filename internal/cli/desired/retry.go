package desired

import (
	"context"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
)

// RequestRetry returns the value that the status has once the retry is handled.
func RequestRetry(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage) (string, error) {
	value := time.Now().UTC().Format(time.RFC3339Nano)
	return value, MergePatch(ctx, cl, t, pkg, corev1alpha1.RetryAnnotation, value, nil)
}

// Fails reports whether a retry may help.
func Fails(t progress.Target, pkg corev1alpha1.GenericPackage) bool {
	s := progress.Of(progress.Snapshot{Target: t, Package: pkg})
	return s.Paused == "" && (s.PullError != "" || s.Invalid != "" || s.Unresolved != "" || s.Stalled != "" || len(s.Blocking) > 0)
}
