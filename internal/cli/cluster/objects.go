package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ObjectName is an object as an argument has it.
type ObjectName struct {
	// Kind is a kind or resource, or a short name of one, as kubectl takes it.
	Kind, Name string
}

// ParseObjects parses KIND/NAME..., or KIND NAME..., without those that are there twice.
func ParseObjects(args []string) ([]ObjectName, error) {
	var all []ObjectName
	seen := map[ObjectName]bool{}
	add := func(n ObjectName) {
		if !seen[n] {
			seen[n], all = true, append(all, n)
		}
	}
	switch {
	case len(args) == 0:
		return nil, errors.New("KIND/NAME is missing")
	case !strings.Contains(args[0], "/"):
		if len(args) == 1 {
			return nil, fmt.Errorf("%q is no object: write KIND/NAME, such as deployment/%s", args[0], args[0])
		}
		for _, name := range args[1:] {
			if name == "" || strings.Contains(name, "/") {
				return nil, fmt.Errorf("%q is no name: write KIND/NAME everywhere, or one KIND and names", name)
			}
			add(ObjectName{args[0], name})
		}
		return all, nil
	}
	for _, arg := range args {
		kind, name, _ := strings.Cut(arg, "/")
		if kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q is no object: write KIND/NAME", arg)
		}
		add(ObjectName{kind, name})
	}
	return all, nil
}

// ReadNamed reads objects of the namespace or of the cluster. An object that two names select is
// returned once. The client is one for all kinds.
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
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("the cluster serves no kind %s", n.Kind)
		}
		if err != nil {
			return nil, c.Explain("cannot find the kind "+n.Kind, err)
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(mapping.GroupVersionKind)
		key := client.ObjectKey{Namespace: c.Namespace, Name: n.Name}
		where := " in namespace " + c.Namespace
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			key.Namespace, where = "", ""
		}
		err = all.Get(ctx, key, u)
		switch {
		case apierrors.IsNotFound(err):
			return nil, NotFoundError(fmt.Sprintf("there is no %s %s%s", mapping.GroupVersionKind.Kind, n.Name, where))
		case err != nil:
			return nil, c.Explain("cannot read "+n.Kind+" "+n.Name, err)
		}
		if id := mapping.GroupVersionKind.GroupKind().String() + "/" + n.Name; !seen[id] {
			seen[id], found = true, append(found, u)
		}
	}
	return found, nil
}

// mappingOf finds a kind by its name, that of its resource, or a short one; with its group and
// version where these are given.
func mappingOf(mapper meta.RESTMapper, name string) (*meta.RESTMapping, error) {
	full, part := schema.ParseResourceArg(strings.ToLower(name))
	gvk := schema.GroupVersionKind{}
	if full != nil {
		gvk, _ = mapper.KindFor(*full)
	}
	if gvk.Empty() {
		var err error
		if gvk, err = mapper.KindFor(part.WithVersion("")); err != nil {
			return kindNamed(mapper, name, err)
		}
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// kindNamed finds a kind that is written as in manifests, such as ConfigMap or Deployment.apps.
func kindNamed(mapper meta.RESTMapper, name string, otherwise error) (*meta.RESTMapping, error) {
	full, kind := schema.ParseKindArg(name)
	if full != nil {
		if mapping, err := mapper.RESTMapping(full.GroupKind(), full.Version); err == nil {
			return mapping, nil
		}
	}
	mapping, err := mapper.RESTMapping(kind)
	if err != nil {
		return nil, otherwise
	}
	return mapping, nil
}
