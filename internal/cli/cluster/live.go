package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
)

// errNoConfig is that of a connection that knows this project's kinds only.
var errNoConfig = errors.New("the connection cannot read other kinds")

// listPage is how many objects one answer holds.
const listPage = 500

// listFrom is how many objects of one kind and namespace are read one by one;
// more of them by a list of all that the engine manages there.
const listFrom = 4

// Live reads the objects of a revision as they are in the cluster: few requests,
// however many objects. What does not exist is left out; unreadable says why
// objects of a kind cannot be read. Who prints them keeps to their status: they
// hold everything, values of Secrets included.
func (c *Cluster) Live(ctx context.Context, wanted []objectdiff.Object) (live map[objects.Key]*unstructured.Unstructured, unreadable map[schema.GroupKind]string, err error) {
	if c.Config == nil {
		return nil, nil, errNoConfig
	}
	reader, err := client.New(c.Config, client.Options{})
	if err != nil {
		return nil, nil, c.Explain("cannot read the kinds of the cluster", err)
	}
	type group struct {
		kind      schema.GroupVersionKind
		namespace string
	}
	groups := map[group]map[string]objects.Key{}
	for _, o := range wanted {
		gv, err := schema.ParseGroupVersion(fmt.Sprint(o.Value["apiVersion"]))
		if err != nil {
			continue
		}
		g := group{gv.WithKind(o.Key.Kind), o.Key.Namespace}
		if groups[g] == nil {
			groups[g] = map[string]objects.Key{}
		}
		groups[g][o.Key.Name] = o.Key
	}
	live, unreadable = map[objects.Key]*unstructured.Unstructured{}, map[schema.GroupKind]string{}
	for g, names := range groups {
		if err := c.readGroup(ctx, reader, g.kind, g.namespace, names, live); err != nil {
			if ctx.Err() != nil {
				return nil, nil, c.Explain("cannot read objects", ctx.Err())
			}
			unreadable[g.kind.GroupKind()] = shortly(err)
		}
	}
	return live, unreadable, nil
}

// shortly says why a kind cannot be read.
func shortly(err error) string {
	switch {
	case meta.IsNoMatchError(err):
		return "the cluster does not serve this kind"
	case apierrors.IsForbidden(err):
		return "you may not read this kind"
	}
	return brief(err)
}

func (c *Cluster) readGroup(
	ctx context.Context, reader client.Client, kind schema.GroupVersionKind, namespace string, names map[string]objects.Key, live map[objects.Key]*unstructured.Unstructured,
) error {
	// Whether a kind has namespaces is what the cluster says: an object of a
	// namespaced revision is looked for where it can be.
	mapping, err := reader.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	if len(names) < listFrom {
		return readEach(ctx, reader, kind, namespace, slices.Collect(maps.Keys(names)), names, live)
	}
	err = pages(ctx, reader, kind, namespace, &unstructured.UnstructuredList{}, func(obj client.Object) {
		if key, ok := names[obj.GetName()]; ok {
			live[key] = obj.(*unstructured.Unstructured)
		}
	}, client.MatchingLabels{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue})
	if err != nil {
		return err
	}
	// What lacks the label may be there all the same, and someone else's.
	missing := map[string]bool{}
	for name, key := range names {
		missing[name] = live[key] == nil
	}
	if !slices.Contains(slices.Collect(maps.Values(missing)), true) {
		return nil
	}
	var there []string
	err = pages(ctx, reader, kind, namespace, &metav1.PartialObjectMetadataList{}, func(obj client.Object) {
		if missing[obj.GetName()] {
			there = append(there, obj.GetName())
		}
	})
	if err != nil {
		return err
	}
	return readEach(ctx, reader, kind, namespace, there, names, live)
}

// readEach reads objects one by one.
func readEach(
	ctx context.Context, reader client.Client, kind schema.GroupVersionKind, namespace string, which []string,
	names map[string]objects.Key, live map[objects.Key]*unstructured.Unstructured,
) error {
	for _, name := range which {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
		if err == nil {
			live[names[name]] = u
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// pages visits the objects of a kind, a page at a time. list is an empty list of the
// form that is wanted.
func pages(
	ctx context.Context, reader client.Client, kind schema.GroupVersionKind, namespace string, list client.ObjectList,
	visit func(client.Object), opts ...client.ListOption,
) error {
	next := ""
	for {
		page := list.DeepCopyObject().(client.ObjectList)
		page.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := reader.List(ctx, page, append([]client.ListOption{client.InNamespace(namespace), client.Limit(listPage), client.Continue(next)}, opts...)...)
		if err != nil {
			return err
		}
		err = meta.EachListItem(page, func(item runtime.Object) error {
			visit(item.(client.Object))
			return nil
		})
		if err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}
