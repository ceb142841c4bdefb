package cluster

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

// AnyKind returns a client for kinds of all sorts, which asks the API server what
// it serves.
func (c *Cluster) AnyKind() (client.Client, error) {
	if c.Config == nil {
		return nil, errors.New("there is no API server")
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1alpha1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	made, err := client.New(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client for all kinds: %w", err)
	}
	return made, nil
}

// Look reads a package with its deployment and its newest revision; what may not be
// read is nil.
func (c *Cluster) Look(ctx context.Context, t progress.Target, pkg corev1alpha1.GenericPackage) (progress.Snapshot, corev1alpha1.GenericObjectDeployment, error) {
	snap := progress.Snapshot{Target: t, Package: pkg}
	dep := t.Scope.NewObjectDeployment()
	err := c.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Name}, dep)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		dep = nil
	case err != nil:
		return snap, nil, c.Explain("cannot read the deployment of "+t.String(), err)
	}
	list := t.Scope.NewObjectSetList()
	own := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{corev1alpha1.PackageLabel: t.Name})}
	err = c.List(ctx, list.(client.ObjectList), client.InNamespace(t.Namespace), own)
	if err != nil && !apierrors.IsForbidden(err) {
		return snap, nil, c.Explain("cannot read the revisions of "+t.String(), err)
	}
	var sets []client.Object
	for _, set := range list.GenericObjectSets() {
		sets = append(sets, set)
	}
	snap.Set = newest(sets)
	return snap, dep, nil
}
