package invariants

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/sandbox"
)

// Collections returns a filter of the manager's requests that collect the slices of some
// namespaces that are spare now: lists of slices and, of those slices, deletions and
// removals of finalizers, each once. Slices are deleted when they are a minute old, or
// are looked for then, be it while everything else is at rest or by a manager that
// starts. A second request of the kind is no part of it.
func Collections(ctx context.Context, reader client.Reader, namespaces ...string) (func(sandbox.Entry) bool, error) {
	spare := map[string]bool{}
	for _, namespace := range namespaces {
		all, err := list(ctx, reader, namespace, kinds)
		if err != nil {
			return nil, err
		}
		is := sparesIn(all)
		for i := range all {
			if is(&all[i]) {
				spare[namespace+"/"+all[i].GetName()] = true
			}
		}
	}
	return collectionsOf(spare), nil
}

// collectionsOf does so for slices by their namespaces and names.
func collectionsOf(spare map[string]bool) func(sandbox.Entry) bool {
	seen := map[string]bool{}
	return func(e sandbox.Entry) bool {
		asked := e.Verb + " " + e.RequestURI
		once := !seen[asked]
		seen[asked] = true
		switch e.Verb {
		case "list":
			return once && strings.Contains(e.RequestURI, "slices.package-operator.run") // those of Secrets are chosen by a label of ours
		case "delete", "patch":
			return once && spare[e.Object.Namespace+"/"+e.Object.Name] && (e.Object.Resource == "objectslices" || e.Object.Resource == "secrets")
		}
		return false
	}
}

// sparesIn returns a filter of the objects in a namespace that are slices which nothing
// names while their deployment lives: when they are collected depends on their age.
func sparesIn(all []unstructured.Unstructured) func(*unstructured.Unstructured) bool {
	used, alive := map[string]bool{}, false
	for i := range all {
		path := []string{"spec", "phases"}
		switch all[i].GetKind() {
		case "ObjectDeployment":
			path, alive = []string{"spec", "template", "spec", "phases"}, true
		case "ObjectSet":
		default:
			continue
		}
		phases, _, _ := unstructured.NestedSlice(all[i].Object, path...)
		for _, phase := range phases {
			for _, field := range []string{"slices", "secretSlices"} {
				names, _, _ := unstructured.NestedStringSlice(phase.(map[string]any), field)
				for _, name := range names {
					used[name] = true
				}
			}
		}
	}
	return func(obj *unstructured.Unstructured) bool {
		return alive && (obj.GetKind() == "ObjectSlice" || sealed(obj)) && !used[obj.GetName()]
	}
}
