package deployment

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/test/require"
)

// wire sends a deployment through JSON, as the API server would return it.
func wire(t *testing.T, dep corev1alpha1.GenericObjectDeployment) *corev1alpha1.ObjectDeployment {
	t.Helper()
	encoded, err := json.Marshal(dep)
	require.NoError(t, err)
	if encoded, err = load.Canonical(encoded); err != nil {
		t.Fatal(err)
	}
	back := &corev1alpha1.ObjectDeployment{}
	require.NoError(t, json.Unmarshal(encoded, back))
	for i := range back.Spec.Template.Spec.Phases {
		for j := range back.Spec.Template.Spec.Phases[i].Objects {
			back.Spec.Template.Spec.Phases[i].Objects[j].CollisionProtection = "Prevent" // the default of the schema
		}
	}
	return back
}

func shaped(t *testing.T, dep corev1alpha1.GenericObjectDeployment, pkg *corev1alpha1.Package, content *load.Content) corev1alpha1.GenericObjectDeployment {
	t.Helper()
	dep = dep.DeepCopyObject().(corev1alpha1.GenericObjectDeployment)
	CopySettings(dep, pkg, "", true)
	require.NoError(t, Fill(dep, pkg, printOf(pkg), content, content.Template, nil))
	return dep
}

func TestShapeOfANewDeployment(t *testing.T) {
	t.Parallel()
	pkg := newPackage(func(p *corev1alpha1.Package) {
		p.Spec.Config = ptrTo(raw(`{"b": 1, "a": 2}`))
		p.Spec.Component = "server"
		p.Spec.ProgressDeadlineSeconds = ptr.To[int32](30)
	})
	dep := shaped(t, New(pkg), pkg, newContent()).(*corev1alpha1.ObjectDeployment)
	identity := map[string]string{corev1alpha1.PackageLabel: "shop", corev1alpha1.PackageInstanceLabel: "shop"}
	want := &corev1alpha1.ObjectDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "shop", Labels: newContent().Labels,
			Annotations: map[string]string{
				"package-operator.run/package-source-image": image,
				"package-operator.run/package-config":       `{"a":2,"b":1}`,
				"package-operator.run/package-digest":       digest,
				"package-operator.run/package-component":    "server",
				"package-operator.run/unpacked-hash":        printOf(pkg).String(),
				"package-operator.run/template-digest":      "401149b8676a89d54cb8c7526d68675b", // as recorded by earlier engines
				"kubernetes.io/change-cause":                "Installing shop package.",
			},
			Finalizers: []string{"package-operator.run/cached"},
			// Without blockOwnerDeletion: teardown is the engine's.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "package-operator.run/v1alpha1", Kind: "Package", Name: "shop", UID: "pkg-uid", Controller: ptr.To(true),
			}},
		},
		Spec: corev1alpha1.ObjectDeploymentSpec{
			RevisionHistoryLimit: ptr.To[int32](10), ProgressDeadlineSeconds: ptr.To[int32](30),
			Selector: metav1.LabelSelector{MatchLabels: identity},
			Template: corev1alpha1.ObjectSetTemplate{Metadata: metav1.ObjectMeta{Labels: identity}, Spec: newContent().Template},
		},
	}
	require.Equal(t, want, dep)
}

// A deployment that was shaped before is left alone, however the API server changed its JSON.
func TestShapeIsStable(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1alpha1.Package){
		"plain":  func(*corev1alpha1.Package) {},
		"config": func(p *corev1alpha1.Package) { p.Spec.Config = ptrTo(raw(`{"b": 1.0, "a": [1, {"d":1,"c":2}]}`)) },
		"paused": paused,
		"limits": func(p *corev1alpha1.Package) { p.Spec.RevisionHistoryLimit = ptr.To[int32](0) },
	} {
		pkg := newPackage(change)
		stored := wire(t, shaped(t, New(pkg), pkg, newContent()))
		stored.Labels["foreign"], stored.Annotations["foreign"] = "kept", "kept"
		if again := shaped(t, stored, pkg, newContent()); !equality.Semantic.DeepEqual(stored, again) {
			t.Errorf("%s: %s", name, cmp.Diff(stored, again))
		}
	}
}

func TestShapeOfAChange(t *testing.T) {
	t.Parallel()
	base := wire(t, shaped(t, New(newPackage()), newPackage(), newContent()))
	for name, tc := range map[string]struct {
		reason  string
		pkg     func(*corev1alpha1.Package)
		content func(*load.Content)
		stored  func(*corev1alpha1.ObjectDeployment)
		check   func(*corev1alpha1.ObjectDeployment) any
		want    any
	}{
		"image": {
			reason: "history shows the change",
			pkg:    func(p *corev1alpha1.Package) { p.Spec.Image = "x" },
			check:  func(d *corev1alpha1.ObjectDeployment) any { return d.Annotations[corev1alpha1.ChangeCauseAnnotation] },
			want:   "Package source image changed.",
		},
		"image and config": {
			reason: "history shows the change",
			pkg:    func(p *corev1alpha1.Package) { p.Spec.Image, p.Spec.Config = "x", ptrTo(raw(`{}`)) },
			check:  func(d *corev1alpha1.ObjectDeployment) any { return d.Annotations[corev1alpha1.ChangeCauseAnnotation] },
			want:   "Package source image and config changed.",
		},
		"spec as it was": {
			reason: "the spec is unchanged: the tag has moved",
			pkg: func(p *corev1alpha1.Package) {
				p.Generation = 7
			},
			stored: func(d *corev1alpha1.ObjectDeployment) {
				d.Annotations[corev1alpha1.ChangedWithAnnotation] = "kubectl"
			},
			content: func(c *load.Content) { c.Template.SuccessDelaySeconds = 5 },
			check: func(d *corev1alpha1.ObjectDeployment) any {
				_, has := d.Annotations[corev1alpha1.ChangedWithAnnotation]
				return has
			},
			want: false,
		},
		"content alone": {
			reason:  "another component, or another environment",
			content: func(c *load.Content) { c.Template.SuccessDelaySeconds = 5 },
			check:   func(d *corev1alpha1.ObjectDeployment) any { return d.Annotations[corev1alpha1.ChangeCauseAnnotation] },
			want:    "Package content changed.",
		},
		"version dropped": {
			reason:  "a label that the manifest does not state is removed",
			content: func(c *load.Content) { delete(c.Labels, corev1alpha1.PackageVersionLabel) },
			stored:  func(d *corev1alpha1.ObjectDeployment) { d.Labels["foreign"] = "kept" },
			check:   func(d *corev1alpha1.ObjectDeployment) any { return d.Labels },
			want:    map[string]string{corev1alpha1.PackageLabel: "shop", corev1alpha1.PackageInstanceLabel: "shop", "foreign": "kept"},
		},
		"former slices": {
			reason: "slices of another engine are collected even if the new content needs none",
			stored: func(d *corev1alpha1.ObjectDeployment) { d.Spec.Template.Spec.Phases[0].Slices = []string{"shop-1"} },
			check:  func(d *corev1alpha1.ObjectDeployment) any { return d.Annotations[corev1alpha1.SlicedAnnotation] },
			want:   "true",
		},
		"selector": {
			reason: "an existing deployment keeps its selector and template labels",
			stored: func(d *corev1alpha1.ObjectDeployment) {
				d.Spec.Selector.MatchLabels = map[string]string{"a": "b"}
				d.Spec.Template.Metadata.Labels = map[string]string{"a": "b"}
			},
			check: func(d *corev1alpha1.ObjectDeployment) any {
				return []any{d.Spec.Selector.MatchLabels, d.Spec.Template.Metadata.Labels}
			},
			want: []any{map[string]string{"a": "b"}, map[string]string{"a": "b"}},
		},
		"limits unset again": {
			reason: "what the package leaves open is the default",
			stored: func(d *corev1alpha1.ObjectDeployment) {
				d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds = ptr.To[int32](1), ptr.To[int32](1)
			},
			check: func(d *corev1alpha1.ObjectDeployment) any {
				return []any{*d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds}
			},
			want: []any{int32(10), (*int32)(nil)},
		},
		"owners": {
			reason: "a reference that dangles is replaced, others stay",
			stored: func(d *corev1alpha1.ObjectDeployment) {
				controlledBy("Package", "shop", "")(d)
				d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{Kind: "ConfigMap", Name: "x", UID: "x"})
			},
			check: func(d *corev1alpha1.ObjectDeployment) any {
				return []any{d.OwnerReferences[0].UID, d.OwnerReferences[1].UID, len(d.OwnerReferences)}
			},
			want: []any{newPackage().UID, metav1.OwnerReference{UID: "x"}.UID, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg, content, stored := newPackage(), newContent(), base.DeepCopy()
			if tc.pkg != nil {
				tc.pkg(pkg)
			}
			if tc.content != nil {
				tc.content(content)
			}
			if tc.stored != nil {
				tc.stored(stored)
			}
			got := shaped(t, stored, pkg, content).(*corev1alpha1.ObjectDeployment)
			require.Equal(t, tc.want, tc.check(got), tc.reason)
		})
	}
}
