package clustertest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

const (
	// DigestOne is the digest of the first revision.
	DigestOne = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	digestTwo = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

func ownedBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

// Revision is a set of the deployment web in the namespace shop.
func Revision(number int64, annotations map[string]string, phases ...corev1alpha1.ObjectSetTemplatePhase) *corev1alpha1.ObjectSet {
	set := &corev1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("web-%d", number), Namespace: "shop", UID: types.UID(fmt.Sprintf("set-%d", number)),
		Labels: map[string]string{corev1alpha1.ObjectDeploymentLabel: "web"}, Annotations: annotations,
		OwnerReferences: ownedBy("ObjectDeployment", "web", "dep"),
	}}
	set.Spec.Revision, set.Spec.Phases = number, phases
	return set
}

// PhaseOf is a phase with objects.
func PhaseOf(name string, objects ...string) corev1alpha1.ObjectSetTemplatePhase {
	p := corev1alpha1.ObjectSetTemplatePhase{Name: name}
	for _, o := range objects {
		p.Objects = append(p.Objects, corev1alpha1.ObjectSetObject{Object: runtime.RawExtension{Raw: []byte(o)}})
	}
	return p
}

func made(image, digest, config, component, cause string) map[string]string {
	return map[string]string{
		corev1alpha1.PackageSourceImageAnnotation: image, corev1alpha1.PackageDigestAnnotation: digest,
		corev1alpha1.PackageConfigAnnotation: config, corev1alpha1.PackageComponentAnnotation: component, corev1alpha1.ChangeCauseAnnotation: cause,
	}
}

// SecretValue must not be printed.
const SecretValue = "dmVyeS1zZWNyZXQtdmFsdWU="

// Revised is a package with two revisions, and sets that belong to others.
func Revised(change func(*corev1alpha1.Package, *corev1alpha1.ObjectDeployment)) []client.Object {
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "pkg", Generation: 1}}
	pkg.Spec = corev1alpha1.PackageSpec{Image: "example.com/web:v2", Config: Raw(`{"color":"red"}`), Component: "front"}
	pkg.Status = Available()
	dep := &corev1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "dep", OwnerReferences: ownedBy("Package", "web", "pkg")}}
	if change != nil {
		change(pkg, dep)
	}

	one := Revision(1, made("example.com/web:v1", DigestOne, `{"color":"blue"}`, "", "Installing web package."),
		PhaseOf("deploy",
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"web","image":"web:v1"}]}}}}`,
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"`+SecretValue+`"}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old\u001b[31m"}}`))

	one.Status.Conditions = []metav1.Condition{Condition("Succeeded", "True", "RolloutSuccess", "")}
	one.Labels[corev1alpha1.PackageVersionLabel] = "1.2.0"
	one.Spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
	two := Revision(2, made("example.com/web:v2", digestTwo, `{"color":"red"}`, "front", "Package source image changed."),
		PhaseOf("config"),
		corev1alpha1.ObjectSetTemplatePhase{Name: "deploy", Slices: []string{"slice"}})
	slice := &corev1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice", Namespace: "shop"}}
	slice.Objects = PhaseOf("",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"side","image":"s"},{"name":"web","image":"web:v2"}]}}}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"b3RoZXItc2VjcmV0"}}`).Objects
	other := Revision(7, nil, PhaseOf("deploy"))
	other.Name, other.OwnerReferences[0].UID = "web-other", "someone else's"
	return []client.Object{pkg, dep, one, two, slice, other}
}
