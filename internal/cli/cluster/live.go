package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
)

// listFrom is the number of objects from which one list replaces the GETs.
const listFrom = 4

// Live reads the existing objects of a revision. unreadable has reasons by kind. Secrets have their
// values.
func (c *Cluster) Live(ctx context.Context, wanted []objectdiff.Object) (live map[objects.Key]*unstructured.Unstructured, unreadable map[schema.GroupKind]string, err error) {
	if c.Config == nil {
		return nil, nil, errors.New("the connection cannot read other kinds")
	}

	reader, err := client.New(c.Config, client.Options{})
	if err != nil {
		return nil, nil, c.Explain("cannot read the kinds of the cluster", err)
	}

	type group struct {
		kind      schema.GroupVersionKind
		namespace string
	}

	groups := map[group][]objects.Key{}
	// One list can serve all objects of a kind and namespace.
	for _, o := range wanted {
		g := group{schema.FromAPIVersionAndKind(fmt.Sprint(o.Value["apiVersion"]), o.Key.Kind), o.Key.Namespace}
		groups[g] = append(groups[g], o.Key)
	}

	live, unreadable = map[objects.Key]*unstructured.Unstructured{}, map[schema.GroupKind]string{}
	for g, keys := range groups {
		err := readGroup(ctx, reader, g.kind, g.namespace, keys, live)
		if ctx.Err() != nil {
			return nil, nil, c.Explain("cannot read objects", ctx.Err())
		}

		// An unreadable kind does not hide the objects of the others.
		switch {
		case err == nil:
		case meta.IsNoMatchError(err):
			unreadable[g.kind.GroupKind()] = "the cluster does not serve this kind"
		case apierrors.IsForbidden(err):
			unreadable[g.kind.GroupKind()] = "you may not read this kind"
		default:
			unreadable[g.kind.GroupKind()] = brief(err)
		}
	}

	return live, unreadable, nil
}

// readGroup reads the objects of one kind and namespace into live. It lists them if there are many.
func readGroup(
	ctx context.Context, reader client.Client, kind schema.GroupVersionKind, namespace string, keys []objects.Key,
	live map[objects.Key]*unstructured.Unstructured,
) error {
	mapping, err := reader.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	// The template can name a namespace even for a cluster-scoped kind, as in kubectl.
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}

	listed := map[string]*unstructured.Unstructured{}
	if len(keys) >= listFrom {
		if listed, err = listManaged(ctx, reader, kind, namespace); err != nil {
			return err
		}
	}

	for _, key := range keys {
		u := listed[key.Name]
		if u == nil { // it might lack the engine's label
			u = &unstructured.Unstructured{}
			u.SetGroupVersionKind(kind)
			err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: key.Name}, u)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
		}

		live[key] = u
	}

	return nil
}

// listManaged lists the objects with the label of the engine, by name.
func listManaged(ctx context.Context, reader client.Client, kind schema.GroupVersionKind, namespace string) (map[string]*unstructured.Unstructured, error) {
	managed := labels.SelectorFromSet(labels.Set{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue})
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := reader.List(ctx, page, &client.ListOptions{Namespace: namespace, LabelSelector: managed, Limit: opts.Limit, Continue: opts.Continue})
		return page, err
	})

	found := map[string]*unstructured.Unstructured{}
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		u := item.(*unstructured.Unstructured)
		found[u.GetName()] = u
		return nil
	})

	return found, err
}
