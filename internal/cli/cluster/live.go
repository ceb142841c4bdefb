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

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
)

// notServed is the reason of an unreadable kind that the cluster does not know.
const notServed = "the cluster does not serve this kind"

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

	// A kind can be readable in some namespaces alone.
	type group struct {
		kind      schema.GroupKind
		namespace string
	}
	failed := map[group]bool{}
	live, unreadable = map[objects.Key]*unstructured.Unstructured{}, map[schema.GroupKind]string{}
	for _, o := range wanted {
		kind := o.Key.GroupKind()
		in := group{kind, o.Key.Namespace}
		if failed[in] || unreadable[kind] == notServed {
			continue
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.FromAPIVersionAndKind(fmt.Sprint(o.Value["apiVersion"]), o.Key.Kind))
		err := reader.Get(ctx, client.ObjectKey{Namespace: o.Key.Namespace, Name: o.Key.Name}, u)
		if ctx.Err() != nil {
			return nil, nil, c.Explain("cannot read objects", ctx.Err())
		}

		// An unreadable kind does not hide the objects of the others.
		switch {
		case err == nil:
			live[o.Key] = u
			continue
		case apierrors.IsNotFound(err):
			continue
		case meta.IsNoMatchError(err):
			unreadable[kind] = notServed
		case apierrors.IsForbidden(err):
			unreadable[kind] = "you may not read this kind"
		default:
			unreadable[kind] = brief(err)
		}

		failed[in] = true
	}

	return live, unreadable, nil
}
