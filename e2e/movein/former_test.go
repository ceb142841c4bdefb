package movein_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/test/require"
)

// formerManager is Package Operator's field manager for creates and updates.
const formerManager = "package-operator-manager"

// manifestName is the name in the manifest of every package here. Package Operator labels objects
// with it, and this engine with the name of the Package.
const manifestName = "web-app"

const probes = `  availabilityProbes:
  - selector:
      kind: {group: apps, kind: Deployment}
    probes:
    - condition: {type: Available, status: "True"}
    - fieldsEqual: {fieldA: .status.updatedReplicas, fieldB: .status.replicas}
`

// app returns the files of a package with a value and more settings. Objects of cluster packages
// have a namespace; others do not.
func app(value, more, namespace string) harness.Files {
	files := harness.Files{
		"manifest.yaml": harness.Manifest(manifestName, []string{"config", "deploy"}, probes),
		"config.yaml": fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  annotations: {package-operator.run/phase: config}
data:
  value: %q
%s---
apiVersion: v1
kind: ConfigMap
metadata:
  name: pages
  labels: {app.kubernetes.io/name: web}
  annotations: {package-operator.run/phase: config, note: hello}
data: {index.html: hello}
---
apiVersion: v1
kind: Secret
metadata:
  name: token
  annotations: {package-operator.run/phase: config}
stringData: {token: t}
`, value, more),
		"deploy.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app.kubernetes.io/name: web}
  annotations: {package-operator.run/phase: deploy}
spec:
  replicas: 1
  selector: {matchLabels: {app.kubernetes.io/name: web}}
  template:
    metadata: {labels: {app.kubernetes.io/name: web}}
    spec:
      containers:
      - name: web
        image: example.com/web:1.0
        ports: [{containerPort: 80}]
---
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations: {package-operator.run/phase: deploy}
spec:
  selector: {app.kubernetes.io/name: web}
  ports: [{port: 80}]
`,
	}
	if namespace != "" {
		for _, path := range []string{"config.yaml", "deploy.yaml"} {
			files[path] = regexp.MustCompile(`(?m)^metadata:$`).ReplaceAllString(files[path], "metadata:\n  namespace: "+namespace)
		}
	}
	return files
}

// installation is a package as Package Operator has installed it.
type installation struct {
	scope           corev1alpha1.Scope
	namespace, name string
	// at is the namespace of the objects.
	at    string
	image string
	files harness.Files
	// former is how many archived revisions there are before the present one.
	former int
	// sliced means that each object of a phase is in a slice of its own.
	sliced bool
	// updates means that the objects were created by an update of the manager, as by its
	// early versions.
	updates bool

	deployment corev1alpha1.GenericObjectDeployment
	sets       []corev1alpha1.GenericObjectSet
	objects    []*unstructured.Unstructured
}

// labels returns the labels of a deployment and of its objects.
func (i *installation) labels() map[string]string {
	return map[string]string{corev1alpha1.PackageLabel: manifestName, corev1alpha1.PackageInstanceLabel: i.name}
}

// install writes everything, the package first.
func (i *installation) install(t *testing.T) {
	t.Helper()
	pkg := i.scope.NewPackage()
	pkg.SetNamespace(i.namespace)
	pkg.SetName(i.name)
	pkg.SetFinalizers([]string{corev1alpha1.MetricsFinalizer})
	pkg.PackageSpec().Image = i.image
	require.NoError(t, env.Client.Create(t.Context(), pkg))
	template := i.template(t)
	i.deploy(t, pkg, template)
	for n := range i.former + 1 {
		i.revise(t, int64(n+1), template)
	}
	for _, ph := range template.Phases {
		for _, o := range ph.Objects {
			i.write(t, &o)
		}
	}
	if i.sliced {
		i.reference(t)
	}
	i.reportAll(t, pkg)
}

// template renders the package, and adds the labels that Package Operator adds.
func (i *installation) template(t *testing.T) corev1alpha1.ObjectSetTemplateSpec {
	t.Helper()
	pkg, err := loader.Load(t.Context(), i.files.Bytes(), loader.Options{
		Package: manifestsv1alpha1.TemplateContextPackage{
			Metadata: manifestsv1alpha1.TemplateContextObjectMeta{Name: i.name, Namespace: i.namespace}, Image: i.image,
		},
		Environment: &manifestsv1alpha1.PackageEnvironment{Kubernetes: manifestsv1alpha1.PackageEnvironmentKubernetes{Version: "v1.30.0"}},
	})
	require.NoError(t, err)
	template := pkg.Template()
	for p := range template.Phases {
		for o := range template.Phases[p].Objects {
			raw := &template.Phases[p].Objects[o].Object
			u := decode(t, raw.Raw)
			labels := u.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, i.labels())
			u.SetLabels(labels)
			raw.Raw, err = json.Marshal(u.Object)
			require.NoError(t, err)
		}
	}
	return template
}

// deploy creates the deployment, and the slices that it controls.
func (i *installation) deploy(t *testing.T, pkg corev1alpha1.GenericPackage, template corev1alpha1.ObjectSetTemplateSpec) {
	t.Helper()
	dep := i.scope.NewObjectDeployment()
	dep.SetNamespace(i.namespace)
	dep.SetName(i.name)
	dep.SetLabels(i.labels())
	dep.SetAnnotations(map[string]string{
		corev1alpha1.PackageSourceImageAnnotation: i.image, corev1alpha1.PackageConfigAnnotation: "null",
		corev1alpha1.ChangeCauseAnnotation: "Installing " + manifestName + " package.",
	})
	dep.SetOwnerReferences([]metav1.OwnerReference{reference(i.scope.Kind("Package"), pkg)})
	spec := dep.ObjectDeploymentSpec()
	spec.RevisionHistoryLimit = ptr.To[int32](10)
	spec.Selector.MatchLabels, spec.Template.Metadata.Labels = i.labels(), i.labels()
	require.NoError(t, env.Client.Create(t.Context(), dep, client.FieldOwner(formerManager)))
	i.deployment = dep
	before := dep.DeepCopyObject().(client.Object)
	template.DeepCopyInto(&dep.ObjectDeploymentSpec().Template.Spec)
	if i.sliced {
		i.slice(t, &dep.ObjectDeploymentSpec().Template.Spec)
	}
	require.NoError(t, env.Client.Patch(t.Context(), dep, client.MergeFrom(before), client.FieldOwner(formerManager)))
}

// slice puts the objects of a template into slices.
func (i *installation) slice(t *testing.T, template *corev1alpha1.ObjectSetTemplateSpec) {
	t.Helper()
	for p := range template.Phases {
		ph := &template.Phases[p]
		for n, o := range ph.Objects {
			slice := i.scope.NewObjectSlice()
			slice.SetNamespace(i.namespace)
			slice.SetName(fmt.Sprintf("%s-%d%d5f6d7c8", i.name, p, n))
			slice.SetLabels(map[string]string{corev1alpha1.SliceOwnerLabel: i.name})
			slice.SetOwnerReferences([]metav1.OwnerReference{reference(i.scope.Kind("ObjectDeployment"), i.deployment)})
			*slice.SliceObjects() = []corev1alpha1.ObjectSetObject{o}
			require.NoError(t, env.Client.Create(t.Context(), slice, client.FieldOwner(formerManager)))
			ph.Slices = append(ph.Slices, slice.GetName())
		}
		ph.Objects = nil
	}
}

// revise creates a revision; of the former ones each had another value.
func (i *installation) revise(t *testing.T, number int64, template corev1alpha1.ObjectSetTemplateSpec) {
	t.Helper()
	hash := fmt.Sprintf("%c7d9c5b6f4", 'a'+rune(number))
	set := i.scope.NewObjectSet()
	set.SetNamespace(i.namespace)
	set.SetName(i.name + "-" + hash)
	labels, annotations := i.labels(), maps.Clone(i.deployment.GetAnnotations())
	labels[corev1alpha1.ObjectDeploymentLabel], annotations[corev1alpha1.HashAnnotation] = i.name, hash
	set.SetLabels(labels)
	set.SetAnnotations(annotations)
	set.SetOwnerReferences([]metav1.OwnerReference{reference(i.scope.Kind("ObjectDeployment"), i.deployment)})
	set.SetFinalizers([]string{corev1alpha1.CachedFinalizer, corev1alpha1.MetricsFinalizer})
	spec := set.ObjectSetSpec()
	spec.Revision, spec.LifecycleState = number, corev1alpha1.ObjectSetLifecycleStateActive
	for _, older := range i.sets {
		spec.Previous = append(spec.Previous, corev1alpha1.PreviousRevisionReference{Name: older.GetName()})
	}
	if number > int64(i.former) {
		i.deployment.ObjectDeploymentSpec().Template.Spec.DeepCopyInto(&spec.ObjectSetTemplateSpec)
	} else {
		spec.LifecycleState = corev1alpha1.ObjectSetLifecycleStateArchived
		set.SetFinalizers([]string{corev1alpha1.MetricsFinalizer})
		template.DeepCopyInto(&spec.ObjectSetTemplateSpec)
		first := &spec.Phases[0].Objects[0].Object
		first.Raw = []byte(strings.Replace(string(first.Raw), `"value":"`, `"value":"former`, 1))
	}
	require.NoError(t, env.Client.Create(t.Context(), set, client.FieldOwner(formerManager)))
	i.sets = append(i.sets, set)
}

// write applies an object as the newest revision does.
func (i *installation) write(t *testing.T, o *corev1alpha1.ObjectSetObject) {
	t.Helper()
	u, newest := decode(t, o.Object.Raw), i.sets[len(i.sets)-1]
	if u.GetNamespace() == "" {
		u.SetNamespace(i.namespace)
	}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[corev1alpha1.CacheLabel] = corev1alpha1.CacheLabelValue
	annotations[corev1alpha1.RevisionAnnotation] = strconv.FormatInt(newest.ObjectSetSpec().Revision, 10)
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	u.SetOwnerReferences([]metav1.OwnerReference{reference(i.scope.Kind("ObjectSet"), newest)})
	if i.updates {
		require.NoError(t, env.Client.Create(t.Context(), u, client.FieldOwner(formerManager)))
	} else {
		//nolint:staticcheck // the typed apply of this client needs generated types
		require.NoError(t, env.Client.Patch(t.Context(), u, client.Apply, client.FieldOwner(corev1alpha1.FieldManager)))
	}
	i.objects = append(i.objects, u)
}

// reference makes the revisions owners of the slices that they have loaded.
func (i *installation) reference(t *testing.T) {
	t.Helper()
	newest := i.sets[len(i.sets)-1]
	for _, ph := range newest.ObjectSetSpec().Phases {
		for _, name := range ph.Slices {
			slice := i.scope.NewObjectSlice()
			require.NoError(t, env.Client.Get(t.Context(), client.ObjectKey{Namespace: i.namespace, Name: name}, slice))
			before := slice.DeepCopyObject().(client.Object)
			owner := reference(i.scope.Kind("ObjectSet"), newest)
			owner.Controller, owner.BlockOwnerDeletion = nil, nil
			slice.SetOwnerReferences(append(slice.GetOwnerReferences(), owner))
			require.NoError(t, env.Client.Patch(t.Context(), slice, client.MergeFrom(before), client.FieldOwner(formerManager)))
		}
	}
}

// reportAll writes the statuses.
func (i *installation) reportAll(t *testing.T, pkg corev1alpha1.GenericPackage) {
	t.Helper()
	condition := func(obj corev1alpha1.Conditioned, typ, status, reason string) {
		*obj.StatusConditions() = append(*obj.StatusConditions(), metav1.Condition{
			Type: typ, Status: metav1.ConditionStatus(status), Reason: reason, ObservedGeneration: obj.GetGeneration(),
			LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)), Message: "by Package Operator",
		})
	}
	for n, set := range i.sets {
		status := set.ObjectSetStatus()
		status.Revision = set.ObjectSetSpec().Revision
		condition(set, corev1alpha1.ConditionSucceeded, "True", corev1alpha1.ReasonRolloutSuccess)
		if n < i.former {
			condition(set, corev1alpha1.ConditionArchived, "True", corev1alpha1.ReasonArchived)
		} else {
			condition(set, corev1alpha1.ConditionAvailable, "True", corev1alpha1.ReasonAvailable)
			for _, u := range i.objects {
				gvk := u.GroupVersionKind()
				status.ControllerOf = append(status.ControllerOf, corev1alpha1.ControlledObjectReference{
					Kind: gvk.Kind, Group: gvk.Group, Name: u.GetName(), Namespace: u.GetNamespace(),
				})
			}
		}
		require.NoError(t, env.Client.Status().Update(t.Context(), set, client.FieldOwner(formerManager)))
	}
	newest := i.sets[len(i.sets)-1]
	dep := i.deployment.ObjectDeploymentStatus()
	dep.TemplateHash, dep.Revision = newest.GetAnnotations()[corev1alpha1.HashAnnotation], newest.ObjectSetSpec().Revision
	dep.ControllerOf = []corev1alpha1.ControlledObjectReference{{
		Kind: i.scope.Kind("ObjectSet"), Group: corev1alpha1.GroupName, Name: newest.GetName(), Namespace: i.namespace,
	}}
	condition(i.deployment, corev1alpha1.ConditionAvailable, "True", corev1alpha1.ReasonAvailable)
	condition(i.deployment, corev1alpha1.ConditionProgressing, "False", "Idle")
	require.NoError(t, env.Client.Status().Update(t.Context(), i.deployment, client.FieldOwner(formerManager)))
	pkg.PackageStatus().UnpackedHash, pkg.PackageStatus().Revision = strings.Repeat("0123456789abcdef", 4), newest.ObjectSetSpec().Revision
	condition(pkg, corev1alpha1.ConditionUnpacked, "True", "UnpackSuccess")
	condition(pkg, corev1alpha1.ConditionAvailable, "True", corev1alpha1.ReasonAvailable)
	condition(pkg, corev1alpha1.ConditionProgressing, "False", "Idle")
	require.NoError(t, env.Client.Status().Update(t.Context(), pkg, client.FieldOwner(formerManager)))
}

// reference is a controller reference of Package Operator.
func reference(kind string, owner client.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}

func decode(t *testing.T, raw []byte) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(raw))
	return u
}

// installMany writes a number of installations, each in its own namespace, and one of a
// ClusterPackage, and waits until their pods run.
func installMany(t *testing.T, n int) (all []*installation) {
	t.Helper()
	for k := range n {
		at := fmt.Sprintf("movein-%02d", k)
		all = append(all, &installation{scope: corev1alpha1.ScopeNamespaced, namespace: at, at: at, name: "shop", files: app("v1", "  leaves: v1\n", ""), former: k % 2, updates: k%3 == 1, sliced: k%3 == 2})
	}
	const cluster = "movein-cluster"
	all = append(all, &installation{scope: corev1alpha1.ScopeCluster, at: cluster, name: "platform", files: app("v1", "  leaves: v1\n", cluster), former: 1})
	for _, i := range all {
		i.image = env.Push(t, "movein-"+i.name+":v1", i.files)
		env.Namespace(t, i.at)
		i.install(t)
	}
	for _, i := range all {
		harness.Await(t, env, harness.Patience, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: i.at, Name: "web"}}, "to be available", func(d *appsv1.Deployment) error {
			if d.Status.AvailableReplicas != 1 || d.Status.ObservedGeneration != d.Generation {
				return fmt.Errorf("it has %+v", d.Status)
			}
			return nil
		})
	}
	return all
}

// live reads the objects of an installation by kind and name.
func (i *installation) live(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, o := range i.objects {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(o.GroupVersionKind())
		require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), u))
		found[u.GetKind()+"/"+u.GetName()] = u
	}
	return found
}
