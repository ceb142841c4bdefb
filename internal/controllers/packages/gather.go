package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// gather reads a Package and its deployment in their latest known states; nil if there is no such
// Package.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*reconciliation, error) {
	cached := corev1alpha1.ScopeOf(key.Namespace).NewPackage()
	if err := r.Client.Get(ctx, key, cached); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(key)
		}
		return nil, client.IgnoreNotFound(err)
	}

	pkg, ok := r.Fresh.Latest(cached).(corev1alpha1.GenericPackage)
	if !ok {
		return nil, nil // deleted; its event follows
	}

	s := &reconciliation{Reconciler: r, state: r.stateOf(pkg)}
	r.loads.NoteInstallation(s.state.load, cached)
	s.attempt, s.retryNumber = r.loads.Last(s.state.load)
	s.repaired, s.now, s.pace, s.process = s.state.repaired, r.Now(), r.Pace, r.identity
	var err error
	if s.dep, err = r.deployment(ctx, key, pkg.GetUID()); err != nil {
		return nil, err
	}
	if s.drifted, err = s.state.template.Drifted(s.dep); err != nil {
		return nil, err
	}

	if mutationcache.Reduced(pkg) || deployment.Outdated(pkg, s.dep) || takingBack(pkg) && pkg.GetDeletionTimestamp() == nil {
		if pkg, err = r.readPackage(ctx, pkg); err != nil || pkg == nil {
			return nil, err
		}
	}

	s.pkg = pkg
	return s, nil
}

// readPackage reads a Package from the API server; nil if it was deleted.
func (r *Reconciler) readPackage(ctx context.Context, known corev1alpha1.GenericPackage) (corev1alpha1.GenericPackage, error) {
	pkg := corev1alpha1.ScopeOf(known.GetNamespace()).NewPackage()
	err := r.Reader.Get(ctx, keyOf(known), pkg)
	if apply.IsAbsent(err) || err == nil && pkg.GetUID() != known.GetUID() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the package, because the cached state is outdated: %w", err)
	}

	pkg.SetManagedFields(nil)
	if !mutationcache.Reduced(known) {
		r.Fresh.Put(pkg)
	}
	return pkg, nil
}

// deployment returns the newest known version of a package's deployment; nil if it does not exist.
func (r *Reconciler) deployment(ctx context.Context, key types.NamespacedName, pkg types.UID) (corev1alpha1.GenericObjectDeployment, error) {
	dep := corev1alpha1.ScopeOf(key.Namespace).NewObjectDeployment()
	err := r.Client.Get(ctx, key, dep)
	switch {
	case err == nil:
		dep, _ = r.Fresh.Latest(dep).(corev1alpha1.GenericObjectDeployment)
		return dep, nil
	case !apierrors.IsNotFound(err):
		return nil, err
	}

	// The cache can lack a deployment that this process has just created.
	for _, created := range r.Fresh.Created(string(pkg)) {
		return created.(corev1alpha1.GenericObjectDeployment), nil
	}
	return nil, nil
}

// gatherInputs adds the finalizer, and reads the environment and versions of sources. Pull secrets
// are watched after a failed pull, and for a tag with an interval.
func (s *reconciliation) gatherInputs(ctx context.Context) error {
	// The finalizer comes before anything is made for the Package.
	if err := s.Fresh.AddFinalizer(ctx, s.Client, s.pkg, corev1alpha1.MetricsFinalizer); err != nil {
		return err
	}
	if err := s.takeOver(ctx); err != nil {
		return err
	}

	s.gatherEnvironment(ctx)
	s.gatherPolicies()
	spec, namespace := s.pkg.PackageSpec(), s.namespaceOf(s.pkg)
	refs, pulls := sources.RefsOf(spec, namespace), sources.PullSecrets(spec, namespace)
	failed := s.attempt != nil && s.attempt.Err != nil
	if !failed && spec.Interval == nil {
		pulls = nil
	}

	s.Sources.Use(keyOf(s.pkg), sources.Union(refs, pulls))
	if failed {
		s.gatherDependencies(pulls)
	}

	versions, waiting, problem := s.Sources.Versions(refs)
	s.sourceVersions, s.waiting, s.inputError = versions, s.waiting || waiting, cmp.Or(problem, s.inputError)
	return nil
}

// gatherDependencies records the versions of the pull secrets; the first ones belong to the failed
// attempt.
func (s *reconciliation) gatherDependencies(pulls []sources.Ref) {
	parts := []string{"pull secrets"}
	for _, ref := range pulls {
		state := s.Sources.State(ref)
		if !state.Known {
			return
		}
		parts = append(parts, ref.String()+"="+state.Version)
	}
	s.dependencies = strings.Join(parts, ";")
	if s.attempt.Out.Dependencies == "" {
		s.attempt = s.loads.Update(s.state.load, s.attempt, func(a *load.Attempt) { a.Out.Dependencies = s.dependencies })
	}
}

// gatherPolicies reads which images are trusted.
func (s *reconciliation) gatherPolicies() {
	if s.Policies == nil {
		return
	}
	set, err := s.Policies()
	switch {
	case errors.Is(err, imageconfigs.ErrNotRead):
		s.waiting = true
	case err != nil:
		s.inputError = "Waiting for ImageConfigs: " + err.Error()
	}
	s.policies = set
}

// policyKey identifies the policies' decisions about the image of the Package, and about the images
// that it can name. A changed decision loads the package again, and so verifies its image.
func (v *view) policyKey(image string) string {
	decision, key := v.policies.Decide(image, imagepolicy.Package), ""
	if said := decision.Key(); said != "" {
		key += ";image" + said
	}
	if image == "" && v.policies.WithoutImage() != nil {
		key += ";image refused"
	}
	if rewrites := v.policies.RewriteKey(); rewrites != "" {
		key += ";rewrites " + rewrites
	}
	return key
}

// reportVerified sets the condition Verified by the last load that has ended.
func reportVerified(status *corev1alpha1.PackageStatus, v view) {
	a := v.attempt
	if a == nil || !a.Done {
		return
	}
	outcome := &imagepolicy.Outcome{Refusal: imagepolicy.RefusalOf(a.Err)}
	switch {
	case a.Err == nil && a.Out.Content != nil:
		outcome = a.Out.Content.Verification
	case outcome.Refusal == nil:
		return
	}
	imageconfigs.Report(&status.Conditions, v.pkg.GetGeneration(), outcome)
}
