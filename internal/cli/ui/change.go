package ui

import (
	"context"
	"fmt"
	"net/http"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/ui/page"
)

// change is what a form does with a package, by the rights of the user.
type change func(context.Context, *cluster.Cluster, progress.Target, corev1alpha1.GenericPackage) error

// actions are the changes of --allow-changes, by the last part of their paths.
var actions = map[string]change{
	page.ActionRetry: func(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage) error {
		_, err := desired.RequestRetry(ctx, cl, t, pkg)
		return err
	},
	page.ActionPause: func(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage) error {
		return desired.MergePatch(ctx, cl, t, pkg, corev1alpha1.PauseMessageAnnotation, "paused on the page of kubectl package ui", map[string]any{"paused": true})
	},
	page.ActionUnpause: func(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage) error {
		return desired.MergePatch(ctx, cl, t, pkg, corev1alpha1.PauseMessageAnnotation, nil, map[string]any{"paused": false})
	},
}

// change changes a package as it is now, and leads back to its page. The guard has let through requests of this page alone.
func (s *server) change(w http.ResponseWriter, r *http.Request, do change) {
	t := targetOf(r)
	of := *s.cluster
	of.Namespace = t.Namespace
	_, pkg, err := of.Find(r.Context(), cluster.Name{Scope: t.Scope, Name: t.Name})
	if err == nil && pkg.GetDeletionTimestamp() != nil {
		err = fmt.Errorf("%s is being deleted, and is not changed", t)
	}
	if err == nil {
		err = do(r.Context(), &of, t, pkg)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	http.Redirect(w, r, s.guard.Base()+page.PackagePath(t), http.StatusSeeOther)
}
