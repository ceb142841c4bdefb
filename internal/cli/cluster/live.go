package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objectdiff"
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
		for name, key := range names {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(kind)
			err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
			if err == nil {
				live[key] = u
			} else if !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	}
	next := ""
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(listPage), client.Continue(next),
			client.MatchingLabels{corev1alpha1.CacheLabel: corev1alpha1.CacheLabelValue})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if key, ok := names[list.Items[i].GetName()]; ok {
				live[key] = &list.Items[i]
			}
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
