package scenarios_test

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// archived are the kinds that the command archive supports, in the order of a restore by
// backup tools: custom resources last.
var archived = []string{
	"configmap", "objectslice.package-operator.run", "objectset.package-operator.run",
	"objectdeployment.package-operator.run", "package.package-operator.run",
}

// archiveCommands save and restore objects through the API, as backup tools without access to etcd
// do.
var archiveCommands = commands{
	// archive save: saves all objects of the kinds above in the script's namespace.
	// archive lose: deletes them and ignores finalizers. archive restore: creates the saved
	// objects. Each object has a new UID then, has lost its status, and refers to owners by
	// UIDs that no longer exist.
	"archive": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 1 && slices.Contains([]string{"save", "lose", "restore"}, args[0]), "archive save|lose|restore")
		switch args[0] {
		case "save":
			s.archive = s.all(s.Context())
		case "lose":
			s.lose()
		default:
			for i := range s.archive {
				s.env.Create(s, withoutIdentity(&s.archive[i]))
			}
		}
	},
}

func (s *scenario) all(ctx context.Context) []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, kind := range archived {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(s.object(kind + "/any").GroupVersionKind())
		s.check(s.env.Client.List(ctx, list, client.InNamespace(s.namespace)))
		all = append(all, list.Items...)
	}
	return slices.DeleteFunc(all, func(o unstructured.Unstructured) bool { return o.GetName() == "kube-root-ca.crt" })
}

func (s *scenario) lose() {
	for _, obj := range s.all(s.Context()) {
		s.check(s.env.Client.Patch(s.Context(), &obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		s.check(client.IgnoreNotFound(s.env.Client.Delete(s.Context(), &obj)))
	}
	s.eventually(patience, "all objects to be deleted", func(ctx context.Context) error {
		if n := len(s.all(ctx)); n > 0 {
			return fmt.Errorf("%d objects are left", n)
		}
		return nil
	})
}

// withoutIdentity returns an object as a backup tool creates it.
func withoutIdentity(saved *unstructured.Unstructured) *unstructured.Unstructured {
	obj := saved.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	delete(obj.Object, "status")
	return obj
}
