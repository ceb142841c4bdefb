package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/objects"
)

// ObjectName is an object in an argument.
type ObjectName struct {
	// Namespace is empty for an object in the command's namespace, or a cluster-scoped one.
	Namespace string
	// Kind is a kind, a resource or its short name, as in kubectl.
	Kind, Name string
}

// ParseObjects parses KIND/NAME and NAMESPACE/KIND/NAME.
func ParseObjects(args []string) ([]ObjectName, error) {
	if len(args) == 0 {
		return nil, errors.New("KIND/NAME is missing")
	}

	var all []ObjectName
	for _, arg := range args {
		parts := strings.Split(arg, "/")
		if len(parts) == 1 || len(parts) > 3 || slices.Contains(parts, "") {
			return nil, fmt.Errorf("%q is not an object: write KIND/NAME, or NAMESPACE/KIND/NAME", arg)
		}
		n := ObjectName{Kind: parts[len(parts)-2], Name: parts[len(parts)-1]}
		if len(parts) == 3 {
			n.Namespace = parts[0]
		}
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}

	return all, nil
}

// ReadNamed reads objects of namespaces or of the cluster. It returns an object once even if two
// names select it. all is a client for all kinds.
func (c *Cluster) ReadNamed(ctx context.Context, all client.Client, names []ObjectName) ([]*unstructured.Unstructured, error) {
	disco, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	mapper := restmapper.NewShortcutExpander(all.RESTMapper(), disco, nil)

	var found []*unstructured.Unstructured
	seen := map[string]bool{}
	for _, n := range names {
		mapping, err := mappingOf(mapper, n.Kind)
		switch {
		case meta.IsNoMatchError(err) && n.Namespace != "":
			return nil, fmt.Errorf("the cluster serves no kind %s: %s/%s/%s is read as NAMESPACE/KIND/NAME", n.Kind, n.Namespace, n.Kind, n.Name)
		case meta.IsNoMatchError(err):
			return nil, fmt.Errorf("the cluster serves no kind %s", n.Kind)
		case err != nil:
			return nil, c.Explain("cannot find the kind "+n.Kind, err)
		}

		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(mapping.GroupVersionKind)
		key := client.ObjectKey{Namespace: cmp.Or(n.Namespace, c.Namespace), Name: n.Name}
		where := " in namespace " + key.Namespace
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			if n.Namespace != "" {
				return nil, fmt.Errorf("%s %s is cluster-scoped: write %s/%s", mapping.GroupVersionKind.Kind, n.Name, n.Kind, n.Name)
			}
			key.Namespace, where = "", ""
		}

		err = all.Get(ctx, key, u)
		switch {
		case apierrors.IsNotFound(err):
			return nil, NotFoundError(fmt.Sprintf("there is no %s %s%s", mapping.GroupVersionKind.Kind, n.Name, where))
		case err != nil:
			return nil, c.Explain("cannot read "+n.Kind+" "+n.Name, err)
		}

		// deployment/web and deploy/web are the same object.
		if id := mapping.GroupVersionKind.GroupKind().String() + " " + key.String(); !seen[id] {
			seen[id], found = true, append(found, u)
		}
	}

	return found, nil
}

// mappingOf finds a kind by its name, its resource or a short name, with its group and version if
// these are given.
func mappingOf(mapper meta.RESTMapper, name string) (*meta.RESTMapping, error) {
	full, part := schema.ParseResourceArg(strings.ToLower(name))
	gvk := schema.GroupVersionKind{}
	if full != nil {
		// A dot can also be part of a resource, so an unknown group is not an error yet.
		gvk, _ = mapper.KindFor(*full)
	}
	if gvk.Empty() {
		var err error
		if gvk, err = mapper.KindFor(part.WithVersion("")); err != nil {
			return nil, err
		}
	}

	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

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
