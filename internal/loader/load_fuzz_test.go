package loader

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/test/fuzzing"
)

// FuzzLoad checks that a package of any files is either refused with reasons, or has complete
// objects only: in a phase of the manifest, in the Package's own namespace and with the engine's
// labels. Loading it twice gives the same result.
//
// Code: load.go, objects.go, object.go, metadata.go, phases.go, assignment.go, scope.go,
// component.go, images.go
func FuzzLoad(f *testing.F) {
	fuzzing.SetCanary(f)
	fixed := configMap("a", "first", "data: {a: b}")
	f.Add(plain, fixed, "{{.config}}", `{"a":1}`)
	f.Add(plain, configMap("a", "second", "    package-operator.run/condition: 'has(config.a)'\n    package-operator.run/condition-map: |\n      A => x.y/B\n    package-operator.run/collision-protection: None\n  labels: {x: y}\n"), fixed, "")
	f.Add(plain, "apiVersion: v1\nkind: Namespace\nmetadata: {name: n, annotations: {package-operator.run/phase: first}}\n", configMap("{{ .package.metadata.name }}", "first", "  namespace: other\n"), "")
	f.Add(plain, "apiVersion: v1\nkind: List\nitems: []\n---\nkind: X\n---\napiVersion: v1\nkind: Pod\nmetadata: {generateName: a, uid: u, ownerReferences: [{}]}\nstatus: {a: b}\n", "", "{}")
	for _, text := range fuzzing.Examples(f, "manifest.yaml") {
		f.Add(text, fixed, "", "{}")
	}

	for _, text := range fuzzing.Examples(f, "deployment.yaml.gotmpl", "rbac.yaml.gotmpl", "crd.yaml") {
		f.Add(plain, text, text, `{"resources":{}}`)
	}

	f.Fuzz(func(t *testing.T, manifest, object, template, config string) {
		if len(manifest)+len(object)+len(template)+len(config) > 8<<10 {
			return
		}
		files := pkg("manifest.yaml", manifest, "a.yaml", object, "b.yaml.gotmpl", template)
		ctx, cancel := fuzzing.Context(t)
		defer cancel()
		p, err := Load(ctx, files, namespaced(withConfig(config)))
		if ctx.Err() != nil {
			return
		}
		again, errAgain := Load(ctx, files, namespaced(withConfig(config)))
		if ctx.Err() != nil {
			return
		}
		if (p == nil) != (err != nil) || !reflect.DeepEqual(err, errAgain) || !reflect.DeepEqual(p, again) {
			t.Fatalf("%v, %v, then %v, %v", p, err, again, errAgain)
		}
		var problems violation.Violations
		if err != nil && !errors.As(err, &problems) {
			t.Fatalf("%T: %v", err, err)
		}
		fuzzing.CheckViolations(t, problems)
		if p != nil {
			fuzzing.CheckViolations(t, p.Warnings)
			checkLoaded(t, p)
		}
	})
}

func checkLoaded(t *testing.T, p *Package) {
	t.Helper()
	var names []string
	for _, phase := range p.Manifest.Spec.Phases {
		names = append(names, phase.Name)
	}

	if len(p.Images) > limits.StatusImages {
		t.Fatalf("%d images", len(p.Images))
	}

	for _, phase := range p.Phases {
		if !slices.Contains(names, phase.Name) || len(phase.Objects) == 0 {
			t.Fatalf("the phase %q with %d objects", phase.Name, len(phase.Objects))
		}
		for _, o := range phase.Objects {
			checkLoadedObject(t, o)
		}
	}
}

func checkLoadedObject(t *testing.T, o corev1alpha1.ObjectSetObject) {
	t.Helper()
	var obj metav1.PartialObjectMetadata
	if err := json.Unmarshal(o.Object.Raw, &obj); err != nil {
		t.Fatalf("%s: %v", o.Object.Raw, err)
	}

	for _, annotation := range []string{corev1alpha1.PhaseAnnotation, corev1alpha1.ConditionAnnotation, corev1alpha1.ConditionMapAnnotation, corev1alpha1.CollisionProtectionAnnotation} {
		if _, ok := obj.Annotations[annotation]; ok {
			t.Fatalf("%s stays on %s", annotation, o.Object.Raw)
		}
	}

	switch {
	case obj.APIVersion == "" || obj.Kind == "" || obj.Name == "" || len(o.Object.Raw) > limits.ObjectBytes:
		t.Fatalf("%s", o.Object.Raw)
	case obj.Namespace != "" && obj.Namespace != "team-a":
		t.Fatalf("%s is outside of the Package's namespace", o.Object.Raw)
	case len(obj.OwnerReferences)+len(obj.ManagedFields)+len(obj.UID)+len(obj.ResourceVersion)+len(obj.GenerateName) > 0:
		t.Fatalf("%s states fields that are not its own", o.Object.Raw)
	case obj.Labels[corev1alpha1.PackageLabel] != "my-shop" || obj.Labels[corev1alpha1.PackageInstanceLabel] != "my-shop":
		t.Fatalf("%s has no labels of the package", o.Object.Raw)
	}
}
