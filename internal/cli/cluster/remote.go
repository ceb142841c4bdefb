package cluster

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/version"
)

// Remote is the cluster that a targetRef leads to.
type Remote struct {
	// Cluster has Host, Config and AnyKind, for the user of the kubeconfig.
	*Cluster
	// ID and Home are the UIDs of the namespace kube-system there and here.
	ID, Home types.UID
}

// Remote connects to the cluster of a targetRef of a package in a namespace, which is empty for a
// ClusterPackage. It returns nil for nil. The Secret is read with the rights of the caller. Errors
// quote only the server's address from the kubeconfig.
func (c *Cluster) Remote(ctx context.Context, namespace string, ref *corev1alpha1.TargetReference) (*Remote, error) {
	if ref == nil {
		return nil, nil
	}

	at := targets.RefOf(cmp.Or(namespace, corev1alpha1.DefaultNamespace), ref)
	kubeconfig, err := c.kubeconfig(ctx, at)
	if err != nil {
		return nil, err
	}
	home := &metav1.PartialObjectMetadata{}
	home.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err = c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, home)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the namespace %s, which identifies this cluster in the owners of objects, cannot be read: "+
			"you lack the right get on namespaces/%s", metav1.NamespaceSystem, metav1.NamespaceSystem)
	case err != nil:
		return nil, c.Explain("cannot read the namespace "+metav1.NamespaceSystem, err)
	}

	config, id, err := targets.Connect(ctx, kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s, key %s: %w", at, at.Key, err)
	}
	if id == home.UID {
		// Two owners of one object in the same cluster would both control it.
		return nil, fmt.Errorf("%s, key %s: the kubeconfig leads to the cluster of the package itself: leave targetRef out", at, at.Key)
	}

	config.UserAgent = "kubectl-package/" + version.Get()
	return &Remote{Cluster: &Cluster{Host: config.Host, Config: config}, ID: id, Home: home.UID}, nil
}

// At returns the cluster that holds the objects of a package: its targetRef's, or c if it has none.
func (c *Cluster) At(ctx context.Context, namespace string, ref *corev1alpha1.TargetReference) (*Cluster, error) {
	remote, err := c.Remote(ctx, namespace, ref)
	if err != nil || remote == nil {
		return c, err
	}
	return remote.Cluster, nil
}

// AnyKindAt returns a client for all kinds of the cluster that At returns.
func (c *Cluster) AnyKindAt(ctx context.Context, namespace string, ref *corev1alpha1.TargetReference) (client.Client, error) {
	at, err := c.At(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	return at.AnyKind()
}

// kubeconfig reads the Secret of a targetRef.
func (c *Cluster) kubeconfig(ctx context.Context, at targets.Ref) ([]byte, error) {
	secret := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: at.Name}, secret)
	data, has := secret.Data[at.Key]
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%s, which has the kubeconfig of spec.targetRef, cannot be read: you lack the right get on secrets/%s in namespace %s. "+
			"Without it, render the package: kubectl package render", at, at.Name, at.Namespace)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s, which should have the kubeconfig of spec.targetRef, does not exist: create it", at)
	case err != nil:
		return nil, c.Explain("cannot read "+at.String(), err)
	case !has:
		return nil, fmt.Errorf("%s has no key %q, which spec.targetRef names: create it", at, at.Key)
	}

	return data, nil
}
