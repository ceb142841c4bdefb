package invariants

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/sandbox"
)

// Collections returns a filter for the manager's requests that collect the slices of some
// namespaces that are unused now. It matches lists of slices, deletions of unused slices and
// removals of their finalizers, each once. The manager collects slices a minute after they
// were created, even if everything else is at rest, and when it starts. It does not match a
// second identical request.
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

// collectionsOf is Collections for the slices with these namespaces and names.
func collectionsOf(spare map[string]bool) func(sandbox.Entry) bool {
	seen := map[string]bool{}
	return func(e sandbox.Entry) bool {
		asked := e.Verb + " " + e.RequestURI
		once := !seen[asked]
		seen[asked] = true
		switch e.Verb {
		case "list":
			return once && strings.Contains(e.RequestURI, "slices.package-operator.run") // also in the selector of Secrets
		case "delete", "patch":
			return once && spare[e.Object.Namespace+"/"+e.Object.Name] && (e.Object.Resource == "objectslices" || e.Object.Resource == "secrets")
		}
		return false
	}
}

// sparesIn returns a filter for the unused slices in a namespace whose deployment still
// exists. Their age decides when they are collected.
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
