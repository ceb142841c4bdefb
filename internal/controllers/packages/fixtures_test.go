package packages

import (
	"context"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/revisions"
	"lockstep.run/lockstep/test/properties"
)

const image = "registry.test/shop:v1"

// imageChoice is the choice of a Package whose spec has the image.
var imageChoice = choice.Choice{Origin: choice.Origin{Image: image}}

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	env   = manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: "v1.36.0"}}
)

// newPackage returns a Package of generation 2 that was not reconciled yet.
func newPackage(change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "shop", UID: "pkg-uid", Generation: 2, ResourceVersion: "5",
		Finalizers: []string{corev1alpha1.MetricsFinalizer},
	}}
	pkg.Spec.Image = image
	for _, c := range change {
		c(pkg)
	}
	return pkg
}

// unpackedPackage returns a Package whose present spec was unpacked.
func unpackedPackage(change ...func(*corev1alpha1.Package)) *corev1alpha1.Package {
	pkg := newPackage(change...)
	pkg.Status.UnpackedHash = printOf(pkg).String()
	pkg.Status.ObservedGeneration = pkg.Generation
	pkg.Status.Resolved = &corev1alpha1.ResolvedPackage{Image: image, Digest: digest}
	conditions.Set(&pkg.Status.Conditions, pkg.Generation, corev1alpha1.ConditionUnpacked, true, corev1alpha1.ReasonUnpackSuccess, "Loaded.")
	return pkg
}

// retried sets the retry annotation.
func retried(value string) func(*corev1alpha1.Package) {
	return func(pkg *corev1alpha1.Package) {
		pkg.Annotations = map[string]string{corev1alpha1.RetryAnnotation: value}
	}
}

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func printOf(pkg corev1alpha1.GenericPackage) load.Fingerprint {
	f, err := load.FingerprintOf(pkg, choice.Origin{Image: pkg.PackageSpec().Image}, env, nil, "")
	if err != nil {
		panic(err)
	}
	return f
}

// newOwned returns the deployment of a Package as its controller left it.
func newOwned(change ...func(*corev1alpha1.ObjectDeployment)) *corev1alpha1.ObjectDeployment {
	dep := deployment.New(newPackage()).(*corev1alpha1.ObjectDeployment)
	Accounts{}.copySettings(dep, newPackage())
	dep.UID, dep.Generation, dep.ResourceVersion = "dep-uid", 7, "9"
	dep.Status.ObservedGeneration = 7
	for _, c := range change {
		c(dep)
	}
	return dep
}

// reports sets a condition that is about the present spec of the deployment.
func reports(typ string, status bool, reason string) func(*corev1alpha1.ObjectDeployment) {
	return func(dep *corev1alpha1.ObjectDeployment) {
		conditions.Set(&dep.Status.Conditions, dep.Generation, typ, status, reason, typ+" of the deployment")
	}
}

// rolledOut is a deployment whose rollout is done.
func rolledOut(dep *corev1alpha1.ObjectDeployment) {
	reports(corev1alpha1.ConditionAvailable, true, corev1alpha1.ReasonAvailable)(dep)
	reports(corev1alpha1.ConditionProgressing, false, corev1alpha1.ReasonIdle)(dep)
	reports(corev1alpha1.ConditionReady, true, corev1alpha1.ReasonAvailable)(dep)
	dep.Status.Revision = 3
}

// relabelled changes the labels of a deployment after its status was written.
func relabelled(dep *corev1alpha1.ObjectDeployment) {
	described(dep)
	dep.Labels[corev1alpha1.PackageVersionLabel] = "1.1.0"
}

// described makes the status of a deployment up to date with its template and labels.
func described(dep *corev1alpha1.ObjectDeployment) {
	digest, err := revisions.SpecDigest(dep.Spec.Template.Spec)
	if err != nil {
		panic(err)
	}
	if dep.Labels = maps.Clone(dep.Labels); dep.Labels == nil {
		dep.Labels = map[string]string{}
	}
	dep.Status.TemplateHash = revisions.TemplateHash(digest, revisions.WellKnown(dep))
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

// newReconciler returns a Reconciler with an empty memory, at the time start. Requests that it
// enqueues are in the channel.
func newReconciler(t *testing.T) (*Reconciler, chan types.NamespacedName) {
	t.Helper()
	enqueued := make(chan types.NamespacedName, 1000)
	r := &Reconciler{
		Options: Options{
			Fresh: mutationcache.NewStore(), Slices: mutationcache.NewStore(), Sources: sources.NewWatches(nil, nil),
			Underway: func(string) (all, own int) { return 0, 0 }, Namespace: "system", Pipeline: &load.Pipeline{},
		},
		Now:     func() time.Time { return start },
		enqueue: func(key types.NamespacedName) { enqueued <- key },
	}
	r.connect(cacheOf{r})
	r.loads.Life = t.Context()
	return r, enqueued
}

// cacheOf reads by the client that a Reconciler has at that time.
type cacheOf struct{ *Reconciler }

func (c cacheOf) Get(ctx context.Context, key types.NamespacedName, obj client.Object, opts ...client.GetOption) error {
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c cacheOf) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.Client.List(ctx, list, opts...)
}

// of returns a reconciliation of a Package as gather does, without a deployment.
func (r *Reconciler) of(pkg corev1alpha1.GenericPackage) *reconciliation {
	s := &reconciliation{Reconciler: r, state: r.stateOf(pkg)}
	s.pkg, s.now = pkg, r.Now()
	s.attempt, _ = r.loads.Last(s.state.load)
	s.choice = choice.Choice{Origin: choice.Origin{Image: pkg.PackageSpec().Image}}
	return s
}

func raw(json string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(json)} }

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

func conditionOf(typ, value, reason string) metav1.Condition {
	return metav1.Condition{Type: typ, Status: metav1.ConditionStatus(value), Reason: reason}
}

func TestMain(m *testing.M) { properties.Main(m, 1000) }
