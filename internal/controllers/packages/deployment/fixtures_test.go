package deployment

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/load"
)

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
