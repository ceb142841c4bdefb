package deployment

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
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
	require.NoError(t, Fill(dep, pkg, printOf(pkg), content, content.Template))
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
			reason:  "history shows the change",
			content: func(c *load.Content) { c.Resolved.Image = "x" },
			check:   func(d *corev1alpha1.ObjectDeployment) any { return d.Annotations[corev1alpha1.ChangeCauseAnnotation] },
			want:    "Package source image changed.",
		},
		"image and config": {
			reason:  "history shows the change",
			pkg:     func(p *corev1alpha1.Package) { p.Spec.Config = ptrTo(raw(`{}`)) },
			content: func(c *load.Content) { c.Resolved.Image = "x" },
			check:   func(d *corev1alpha1.ObjectDeployment) any { return d.Annotations[corev1alpha1.ChangeCauseAnnotation] },
			want:    "Package source image and config changed.",
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

// Digests recorded by earlier versions must stay the same: another digest would load every package
// again.
func TestTemplateDigestStays(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		`{"kind":"A","metadata":{"name":"a"},"data":{"b":"2","a":"<1>"}}`:                              "15e8ebcfb185109399de3a51d03c5161",
		`{"metadata":{"labels":{"b":"1","a":"2"},"name":"a","namespace":"n","annotations":{"x":"y"}}}`: "8b216b3a9f2c477308b29bd89f278e0b",
		`{"metadata":{"labels":{},"name":"","creationTimestamp":null}}`:                                "b116a278ec81814dc605449aba239221",
		`{"metadata":{"labels":{"a":null},"name":"a"}}`:                                                "eb3c7056b704992e703adb093281fb54",
		`{"metadata":{"name":"a","unknown":1,"finalizers":["f"]}}`:                                     "ddeba3ef550759b3aa24e9b4afb378b6",
		`{"metadata":{"name":1}}`: "ce6e8851d31a769a45236f20e81f14bf",
		`{"metadata":"text","spec":{"a":[{"b":null,"c":1.0}],"d":1e3,"e":12345678901234567890,"f":{"g":null}}}`: "1c34f5c4cf7db1e0f56f0053e1437e3f",
		`{"spec":{"a":-0.0}}`:            "bdefb53610be8d6b72d310257364c7a4",
		`{"spec":{}}`:                    "4e52bad7a98ecbab37c79488723b5fe8",
		`{"metadata":{}, "a": "\u00e9"}`: "aa68449646d804f5da2a8e0c2b329bff",
	} {
		got, err := templateDigest(&corev1alpha1.ObjectSetTemplateSpec{
			ServiceAccountName: "other",
			Phases: []corev1alpha1.ObjectSetTemplatePhase{
				{Name: "empty"}, {Name: "one", Slices: []string{"s"}, Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(object)}}}},
			},
		})
		if err != nil || got != want {
			t.Errorf("%s: %q, want %q, %v", object, got, want, err)
		}
	}
	for _, object := range []string{`null`, `"text"`, `[]`} {
		spec := &corev1alpha1.ObjectSetTemplateSpec{Phases: []corev1alpha1.ObjectSetTemplatePhase{
			{Objects: []corev1alpha1.ObjectSetObject{{Object: runtime.RawExtension{Raw: []byte(object)}}}},
		}}
		if got, err := templateDigest(spec); err == nil {
			t.Errorf("%s has the digest %s", object, got)
		}
	}
}

// Another account is a setting: the template means the same.
func TestAccountIsNoContent(t *testing.T) {
	t.Parallel()
	spec := corev1alpha1.ObjectSetTemplateSpec{SuccessDelaySeconds: 7}
	without, err := templateDigest(&spec)
	require.NoError(t, err)
	spec.ServiceAccountName = "deployer"
	if with, err := templateDigest(&spec); err != nil || with != without {
		t.Errorf("%s, want %s: %v", with, without, err)
	}
}

const (
	image  = "registry.test/shop:v1"
	digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// newPackage returns a Package of generation 2 that was not reconciled yet.
func newPackage(change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "pkg-uid", Generation: 2}}
	pkg.Spec.Image = image
	for _, c := range change {
		c(pkg)
	}
	return pkg
}

func paused(pkg *corev1alpha1.Package) { pkg.Spec.Paused = true }

func printOf(pkg corev1alpha1.GenericPackage) load.Fingerprint {
	env := manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: "v1.36.0"}}
	f, err := load.FingerprintOf(pkg, choice.Origin{Image: pkg.PackageSpec().Image}, env, nil, "")
	if err != nil {
		panic(err)
	}
	return f
}

func newContent() *load.Content {
	return &load.Content{
		Resolved: corev1alpha1.ResolvedPackage{PackageName: "shop", Version: "1.0.0", Image: image, Digest: digest},
		Labels: map[string]string{
			corev1alpha1.PackageLabel: "shop", corev1alpha1.PackageInstanceLabel: "shop", corev1alpha1.PackageVersionLabel: "1.0.0",
		},
		Template: corev1alpha1.ObjectSetTemplateSpec{Phases: []corev1alpha1.ObjectSetTemplatePhase{{
			Name: "deploy", Objects: []corev1alpha1.ObjectSetObject{{Object: raw(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`)}},
		}}},
	}
}

func raw(json string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(json)} }

func ptrTo[T any](v T) *T { return &v }

func controlledBy(kind, name, uid string) func(*corev1alpha1.ObjectDeployment) {
	return func(dep *corev1alpha1.ObjectDeployment) {
		dep.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "package-operator.run/v1alpha1", Kind: kind, Name: name, UID: "other-uid", Controller: ptr.To(true),
		}}
		if uid != "" {
			dep.OwnerReferences[0].UID = "pkg-uid"
		}
	}
}
