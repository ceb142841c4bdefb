package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/internal/loader"
)

// ownPackage loads the engine's own package as a cluster does.
func ownPackage(t *testing.T) *loader.Package {
	t.Helper()
	files, err := config.PackageFiles("v0.2.0", "lockstep.run/lockstep-manager", "sha256:"+strings.Repeat("1", 64))
	if err != nil {
		t.Fatal(err)
	}
	if warnings, err := loader.Validate(t.Context(), files); err != nil || len(warnings) > 0 {
		t.Errorf("it is not valid: %v, %v", err, warnings)
	}
	pkg, _, err := loader.Preview(t.Context(), files, loader.PreviewOptions{Cluster: true, LockedImages: true})
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// The engine's own package has the objects of the YAML, one by one, and a Job.
func TestPackageIsConfig(t *testing.T) {
	t.Parallel()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), ".")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]any{}
	for _, resource := range resources.Resources() {
		object, err := resource.Map()
		if err != nil {
			t.Fatal(err)
		}
		want[resource.GetKind()+" "+resource.GetName()] = object
	}
	got := map[string]map[string]any{}
	var phases, kept []string
	for _, phase := range ownPackage(t).Phases {
		kinds := map[string]int{}
		for i := range phase.Objects {
			o := &unstructured.Unstructured{}
			if err := o.UnmarshalJSON(phase.Objects[i].Object.Raw); err != nil {
				t.Fatal(err)
			}
			kinds[o.GetKind()]++
			if phase.Objects[i].CollisionProtection != corev1alpha1.CollisionProtectionIfNoController {
				t.Errorf("%s does not adopt what nothing controls", o.GetName())
			}
			annotations, labels := o.GetAnnotations(), o.GetLabels()
			if annotations[corev1alpha1.DeletionPolicyAnnotation] == corev1alpha1.DeletionPolicyKeep && phase.Name != "crds" {
				kept = append(kept, o.GetKind()+" "+o.GetName())
			} else if phase.Name == "crds" && annotations[corev1alpha1.DeletionPolicyAnnotation] == "" {
				t.Errorf("%s is deleted with the package", o.GetName())
			}
			for _, values := range []map[string]string{annotations, labels} {
				maps.DeleteFunc(values, func(key, _ string) bool { return strings.HasPrefix(key, corev1alpha1.GroupName+"/") })
			}
			o.SetAnnotations(annotations)
			o.SetLabels(labels)
			for _, field := range []string{"annotations", "labels"} {
				if values, _, _ := unstructured.NestedMap(o.Object, "metadata", field); len(values) == 0 {
					unstructured.RemoveNestedField(o.Object, "metadata", field)
				}
			}
			got[o.GetKind()+" "+o.GetName()] = o.Object
		}
		phases = append(phases, phase.Name)
		t.Logf("%s: %v", phase.Name, kinds)
	}
	if !slices.Equal(phases, []string{"crds", "rbac", "admission", "rehearse", "deploy"}) {
		t.Errorf("the phases are %v", phases)
	}
	// Without these the manager that runs, or its next pod, could not restore anything.
	slices.Sort(kept)
	if diff := cmp.Diff([]string{
		"ClusterRole lockstep-manager", "ClusterRoleBinding lockstep-manager", "Deployment lockstep-manager", "PriorityClass lockstep-manager",
		"Role lockstep-leader-election", "RoleBinding lockstep-leader-election", "ServiceAccount lockstep-manager",
	}, kept); diff != "" {
		t.Errorf("kept, but for CRDs and namespace (-want +got):\n%s", diff)
	}
	const job, deployment = "Job lockstep-rehearse", "Deployment " + config.ServiceAccount
	if got[job] == nil {
		t.Error("nothing rehearses")
	}
	delete(got, job)
	image := "lockstep.run/lockstep-manager:v0.2.0@sha256:" + strings.Repeat("1", 64)
	container := want[deployment]["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["image"] = image
	if diff := cmp.Diff(want, got, normalNumbers); diff != "" {
		t.Errorf("the package is not config (-config +package):\n%s", diff)
	}
}

// normalNumbers compares numbers of JSON and YAML.
var normalNumbers = cmp.FilterValues(func(a, b any) bool { return number(a) != nil && number(b) != nil }, cmp.Comparer(func(a, b any) bool { return *number(a) == *number(b) }))

func number(value any) *float64 {
	var f float64
	switch n := value.(type) {
	case int:
		f = float64(n)
	case int64:
		f = float64(n)
	case float64:
		f = n
	default:
		return nil
	}
	return &f
}
