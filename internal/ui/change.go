package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/ui/page"
)

// change is what a form does with a package, by the rights of the user.
type change func(context.Context, *cluster.Cluster, progress.Target, corev1alpha1.GenericPackage, url.Values) error

// actions are the changes of --allow-changes, by the last part of their paths.
var actions = map[string]change{
	page.ActionRetry: func(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage, _ url.Values) error {
		_, err := desired.RequestRetry(ctx, cl, t, pkg)
		return err
	},
	page.ActionPause: func(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage, _ url.Values) error {
		return desired.MergePatch(ctx, cl, t, pkg, corev1alpha1.PauseMessageAnnotation, "paused on the page of kubectl package ui", map[string]any{"paused": true})
	},
	page.ActionUnpause: func(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage, _ url.Values) error {
		return desired.MergePatch(ctx, cl, t, pkg, corev1alpha1.PauseMessageAnnotation, nil, map[string]any{"paused": false})
	},
	page.ActionActivate: activate, page.ActionUpgrade: upgrade,
}

// activate lets the revision take over that was shown.
func activate(ctx context.Context, cl *cluster.Cluster, t progress.Target, _ corev1alpha1.GenericPackage, form url.Values) error {
	rollout, err := cl.Rollout(ctx, cluster.Name{Scope: t.Scope, Name: t.Name})
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(form.Get(page.FieldRevision), 10, 64)
	if err != nil || number < 1 {
		return errors.New("the form names no revision: load the page of the package again")
	}
	set, err := rollout.Revision(number)
	if err != nil {
		return err
	}
	if string(set.GetUID()) != form.Get(page.FieldUID) {
		return fmt.Errorf("revision %d of %s is another one than was shown, so that nothing was changed: look at what it would do again", number, t)
	}
	return desired.Activate(ctx, cl, rollout, set)
}

// upgrade moves a package to the version and the digest whose plan was shown.
func upgrade(ctx context.Context, cl *cluster.Cluster, t progress.Target, pkg corev1alpha1.GenericPackage, form url.Values) error {
	ref, version, digest := pkg.PackageSpec().PackageRef.DeepCopy(), form.Get(page.FieldVersion), form.Get(page.FieldDigest)
	switch {
	case ref == nil:
		return fmt.Errorf("%s is installed from an image, and follows no repository", t)
	case version == "" || digest == "":
		return errors.New("the form names no version with its digest: look at the plan again")
	case form.Get(page.FieldGeneration) != strconv.FormatInt(pkg.GetGeneration(), 10):
		return changedSince(t)
	}
	ref.Version = version
	want := desired.Package{Name: cluster.Name{Scope: t.Scope, Name: t.Name}, Ref: ref, Generation: pkg.GetGeneration()}
	choose := desired.ChooserFor(cl, t.Namespace).At(pkg.PackageSpec().TargetRef)
	name, err := choose.NameFor(ctx, pkg, ref)
	if err != nil {
		return err
	}
	found, err := choose.MustChoose(ctx, name, desired.RequestFor(pkg, ref, name))
	if err != nil {
		return err
	}
	chosen := found.Version().Version
	if _, offered, _ := strings.Cut(chosen.Image, "@"); chosen.Version != version || offered != digest {
		return fmt.Errorf("version %s of %s is offered with another digest than the plan was made of, so that nothing was changed: look at the plan again", version, name)
	}
	if err := desired.CheckDependencies(&chosen, want.Dependencies); err != nil {
		return err
	}
	if err := desired.CheckValues(ctx, cl, t, found, pkg, &want, nil); err != nil {
		return err
	}
	done, err := desired.Change(ctx, cl, t, pkg, want)
	if err != nil && done.Pkg == nil {
		// The API server says no more than that a test of the patch failed.
		if now, failed := cl.Read(ctx, t); failed == nil && now.GetGeneration() != want.Generation {
			return changedSince(t)
		}
	}
	return err
}

func changedSince(t progress.Target) error {
	return fmt.Errorf("%s was changed since the plan was made, so that nothing was changed: look at the plan again", t)
}

// change changes a package as it is now, and leads back to its page. The guard has let through requests of this page alone.
func (s *server) change(w http.ResponseWriter, r *http.Request, do change) {
	t := targetOf(r)
	of := *s.cluster
	of.Namespace = t.Namespace
	if err := r.ParseForm(); err != nil {
		s.fail(w, errors.New("the form cannot be read, or is too large"))
		return
	}
	_, pkg, err := of.Find(r.Context(), cluster.Name{Scope: t.Scope, Name: t.Name})
	if err == nil && pkg.GetDeletionTimestamp() != nil {
		err = fmt.Errorf("%s is being deleted, and is not changed", t)
	}
	if err == nil {
		err = do(r.Context(), &of, t, pkg, r.PostForm)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	http.Redirect(w, r, s.guard.Base()+page.PackagePath(t), http.StatusSeeOther)
}
