package invariants

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects/objectslices"
)

// Snapshot contains all objects left in a namespace, as YAML by kind and name, without the
// values that differ between two runs: UIDs, times, versions, generations, hashes.
type Snapshot map[string]string

// kinds are in every snapshot.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1alpha1.GroupVersion.WithKind("Package"),
	corev1alpha1.GroupVersion.WithKind("ObjectDeployment"),
	corev1alpha1.GroupVersion.WithKind("ObjectSet"),
	corev1alpha1.GroupVersion.WithKind("ObjectSetPhase"),
	corev1alpha1.GroupVersion.WithKind("ObjectSlice"),
}

// Look takes a snapshot of ConfigMaps, Secrets, our own kinds and the kinds in others.
func Look(ctx context.Context, reader client.Reader, namespace string, others ...schema.GroupVersionKind) (Snapshot, error) {
	all, err := list(ctx, reader, namespace, slices.Concat(kinds, others))
	if err != nil {
		return nil, err
	}
	return snapshotOf(all, namespace)
}

// LookThere is Look for a package whose objects are in another cluster.
func LookThere(ctx context.Context, reader, there client.Reader, namespace string) (Snapshot, error) {
	all, err := list(ctx, reader, namespace, kinds)
	if err != nil {
		return nil, err
	}
	objects, err := list(ctx, there, namespace, kinds[:2])
	if err != nil {
		return nil, err
	}
	return snapshotOf(append(all, objects...), namespace)
}

// list returns all objects of some kinds in a namespace.
func list(ctx context.Context, reader client.Reader, namespace string, kinds []schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, gvk := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for _, obj := range list.Items {
			if obj.GetName() != "kube-root-ca.crt" {
				all = append(all, obj)
			}
		}
	}
	return all, nil
}

// Same judges invariant 4: the final state is the same as without a fault. The message
// contains the difference.
func Same(step string, want, got Snapshot) []Violation {
	if diff := gocmp.Diff(want, got); diff != "" {
		return []Violation{Step{Name: step}.violation(4, "the final state differs from the state without a fault (-want +got):\n%s", diff)}
	}
	return nil
}

func snapshotOf(all []unstructured.Unstructured, namespace string) (Snapshot, error) {
	spare := sparesIn(all)
	// Keys for hashing are as good when they are lost, and the garbage collector takes
	// them in its own time.
	all = slices.DeleteFunc(all, func(obj unstructured.Unstructured) bool {
		return obj.Object["type"] == corev1alpha1.HashKeyType || spare(&obj)
	})
	aliases, err := aliasesOf(all, namespace)
	if err != nil {
		return nil, err
	}
	sets := map[types.UID]bool{}
	for i := range all {
		sets[all[i].GetUID()] = all[i].GetKind() == "ObjectSet"
	}
	s := Snapshot{}
	for i := range all {
		obj := &all[i]
		// The garbage collector removes references to deleted revisions eventually.
		obj.SetOwnerReferences(slices.DeleteFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return ref.Kind == "ObjectSet" && obj.GetKind() == "ObjectSlice" && !sets[ref.UID]
		}))
		normalise(obj)
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, err
		}
		s[aliases.Replace(obj.GetKind()+" "+obj.GetName())] = gone.ReplaceAllString(aliases.Replace(string(text)), "GONE")
	}
	return s, nil
}

// aliasesOf replaces names that differ in each run by stable ones: the UIDs of objects,
// sets after their revision, slices after the objects in them. A UID of an object that
// does not exist stays, and shows as a difference.
func aliasesOf(all []unstructured.Unstructured, namespace string) (*strings.Replacer, error) {
	pairs := map[string]string{namespace: "NAMESPACE"}
	for i := range all {
		obj := &all[i]
		alias := obj.GetName()
		switch obj.GetKind() {
		case "ObjectSet":
			revision, _, err := unstructured.NestedInt64(obj.Object, "spec", "revision")
			if err != nil {
				return nil, err
			}
			alias = fmt.Sprintf("SET-%d", revision)
			pairs[obj.GetName()] = alias
			if hash := obj.GetAnnotations()[corev1alpha1.HashAnnotation]; hash != "" {
				pairs[hash] = fmt.Sprintf("HASH-%d", revision)
			}
		case "ObjectSlice":
			alias = "SLICE-" + contentOf(obj.Object["objects"])
			pairs[obj.GetName()] = alias
		}
		if sealed(obj) {
			alias = "SECRET-SLICE-" + contentOf(openedOf(obj))
			pairs[obj.GetName()] = alias
		}
		pairs[string(obj.GetUID())] = "UID-OF-" + obj.GetKind() + "-" + alias
	}
	// Longer names come first, so that none is replaced within another.
	var list []string
	for _, name := range slices.SortedFunc(maps.Keys(pairs), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	}) {
		list = append(list, name, pairs[name])
	}
	return strings.NewReplacer(list...), nil
}

// sealed reports whether obj is a Secret that holds objects of a revision.
func sealed(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "Secret" && obj.Object["type"] == corev1alpha1.SecretSliceType
}

// openedOf returns the objects in such a Secret.
func openedOf(obj *unstructured.Unstructured) any {
	secret := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, secret); err != nil {
		return err.Error()
	}
	objects, err := objectslices.Open(secret)
	if err != nil {
		return err.Error()
	}
	return objects
}

// gone are names of deleted objects: of Secrets that held objects of archived revisions, and of
// revisions that history has dropped. They depend on a key that each package generates.
var gone = regexp.MustCompile(`shop-([0-9a-f]{32}|[bcdfghjklmnpqrstvwxz2456789]{10})\b`)

// contentOf names stored objects, with their values.
func contentOf(objects any) string {
	var typed []struct {
		Object struct {
			Metadata         metav1.ObjectMeta
			Data, StringData map[string]string
		}
	}
	raw, err := json.Marshal(objects)
	if err == nil {
		err = json.Unmarshal(raw, &typed)
	}
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, o := range typed {
		names = append(names, o.Object.Metadata.Name+"="+o.Object.Data["value"]+o.Object.StringData["value"])
	}
	return strings.Join(names, "+")
}

// normalise removes values that differ between two runs.
func normalise(obj *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	generation := obj.GetGeneration()
	unstructured.RemoveNestedField(obj.Object, "metadata", "generation")
	annotations := obj.GetAnnotations()
	delete(annotations, corev1alpha1.RevisionAnnotation) // information only: the last writer
	delete(annotations, corev1alpha1.UnpackedHashAnnotation)
	delete(annotations, corev1alpha1.TemplateDigestAnnotation)    // slices have names of their own
	delete(annotations, corev1alpha1.PackageGenerationAnnotation) // the last writer, again
	delete(annotations, corev1alpha1.ClaimedAnnotation)           // only if all objects were claimed at its creation; the condition stays
	obj.SetAnnotations(annotations)
	observed(obj.Object["status"], generation)
	if conditions, found, _ := unstructured.NestedSlice(obj.Object, "status", "conditions"); found {
		// The order only depends on which condition was reported first.
		slices.SortFunc(conditions, func(a, b any) int { return cmp.Compare(typeOf(a), typeOf(b)) })
		_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
	}
	unstructured.RemoveNestedField(obj.Object, "status", "templateHash")
	unstructured.RemoveNestedField(obj.Object, "status", "unpackedHash")
	unstructured.RemoveNestedField(obj.Object, "status", "timeline") // times, which faults change
	if big, found, _ := unstructured.NestedString(obj.Object, "data", "big"); found {
		_ = unstructured.SetNestedField(obj.Object, fmt.Sprintf("%d bytes", len(big)), "data", "big")
	}
	if obj.GetKind() == "ObjectSlice" {
		delete(obj.Object, "objects") // its alias already contains a hash of them
	}
	if sealed(obj) {
		delete(obj.Object, "data") // as above
	}
}

func typeOf(condition any) string {
	typ, _, _ := unstructured.NestedString(condition.(map[string]any), "type")
	return typ
}

// observed replaces generations by whether they are the present one, and times
// by nothing.
func observed(status any, generation int64) {
	switch status := status.(type) {
	case map[string]any:
		delete(status, "lastTransitionTime")
		if at, ok := status["observedGeneration"].(int64); ok {
			status["observedGeneration"] = map[bool]string{true: "present", false: "former"}[at == generation]
		}
		for _, value := range status {
			observed(value, generation)
		}
	case []any:
		for _, value := range status {
			observed(value, generation)
		}
	}
}
