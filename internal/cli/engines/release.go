package engines

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// Rollout is a deployment with all objects that belong to it.
type Rollout struct {
	Deployment corev1alpha1.GenericObjectDeployment
	// Sets are its revisions in ascending order. Slices are the slices that it controls.
	Sets   []corev1alpha1.GenericObjectSet
	Slices []corev1alpha1.GenericObjectSlice
	// Objects are the objects of the revisions that own any, without those in phases with a class.
	Objects map[types.UID][]objects.Key
	// Live are the live objects, without absent ones.
	Live map[objects.Key]*unstructured.Unstructured
}

// Owns reports whether a revision might own objects.
func Owns(set corev1alpha1.GenericObjectSet) bool {
	if set.GetDeletionTimestamp() != nil || set.ObjectSetSpec().LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived {
		return false
	}
	return !slices.ContainsFunc(*set.StatusConditions(), func(c metav1.Condition) bool {
		return c.Type == corev1alpha1.ConditionArchived && c.Status == metav1.ConditionTrue
	})
}

// Refusals returns the reasons why Package Operator cannot take the deployment back.
func (r *Rollout) Refusals() (why []string) {
	if r.Deployment.GetDeletionTimestamp() != nil {
		why = append(why, "it is being deleted: wait until it is removed")
	}
	template := &r.Deployment.ObjectDeploymentSpec().Template.Spec
	if template.TargetRef != nil {
		why = append(why, "its objects are in another cluster (spec.targetRef): Package Operator would recreate them in this one")
	}

	if slices.ContainsFunc(template.Phases, func(p corev1alpha1.ObjectSetTemplatePhase) bool { return len(p.SecretSlices) > 0 }) {
		why = append(why, "it has objects with sensitive values, which Package Operator cannot read: set its values with spec.config")
	}

	for _, set := range r.Sets {
		if set.GetDeletionTimestamp() != nil {
			why = append(why, "revision "+set.GetName()+" is being deleted: wait until it is removed")
		}
	}

	selector, err := metav1.LabelSelectorAsSelector(&r.Deployment.ObjectDeploymentSpec().Selector)
	if err == nil && len(r.Sets) > 0 {
		newest := r.Sets[len(r.Sets)-1]
		if !selector.Matches(labels.Set(r.setMetadata(newest).labels)) {
			err = fmt.Errorf("it does not select revision %s", newest.GetName())
		}
	}

	if err != nil {
		why = append(why, "Package Operator cannot find its revisions, because the selector is invalid: "+err.Error())
	}
	return why
}

// Release returns the patches that let Package Operator take the deployment back: first the
// objects, and the deployment last.
func (r *Rollout) Release() (all []Patch, err error) {
	add := func(obj metav1.Object, to metadata) {
		// Each patch is independent, so the first error does not end the loop.
		p, failed := patch(obj, to)
		if failed != nil {
			err = failed
		}
		if p != nil {
			all = append(all, *p)
		}
	}

	for _, key := range slices.SortedFunc(maps.Keys(r.Live), objects.Key.Compare) {
		if live := r.Live[key]; r.owned(live) {
			add(live, r.objectMetadata(live, r.controllerOf(key)))
		}
	}

	for _, set := range r.Sets {
		add(set, r.setMetadata(set))
	}

	for _, slice := range r.Slices {
		add(slice, withoutFinalizer(slice))
	}

	to := withoutFinalizer(r.Deployment)
	maps.Copy(to.labels, r.wellKnown())
	for _, key := range []string{
		corev1alpha1.UnpackedHashAnnotation, corev1alpha1.TemplateDigestAnnotation, corev1alpha1.PackageGenerationAnnotation, corev1alpha1.PackageDigestAnnotation,
	} {
		delete(to.annotations, key)
	}

	add(r.Deployment, to)
	return all, err
}

// owners are the UIDs of the deployment and its revisions.
func (r *Rollout) owners() sets.Set[types.UID] {
	uids := sets.New(r.Deployment.GetUID())
	for _, set := range r.Sets {
		uids.Insert(set.GetUID())
	}
	return uids
}

// owned reports whether the deployment or one of its revisions controls the object.
func (r *Rollout) owned(live metav1.Object) bool {
	ref := metav1.GetControllerOf(live)
	return ref != nil && r.owners().Has(ref.UID)
}

// controllerOf returns the newest revision that contains the object.
func (r *Rollout) controllerOf(key objects.Key) corev1alpha1.GenericObjectSet {
	for _, set := range slices.Backward(r.Sets) {
		if slices.Contains(r.Objects[set.GetUID()], key) {
			return set
		}
	}
	return nil
}

// objectMetadata returns the metadata of an object that a revision controls. Owner references to
// other revisions are dropped, because an object can have only one controller.
func (r *Rollout) objectMetadata(live metav1.Object, set corev1alpha1.GenericObjectSet) metadata {
	to := metadataOf(live)
	if set == nil {
		return to
	}
	if metav1.GetControllerOf(live).UID != set.GetUID() {
		ours := r.owners()
		to.owners = slices.DeleteFunc(to.owners, func(ref metav1.OwnerReference) bool { return ours.Has(ref.UID) })
		to.owners = append([]metav1.OwnerReference{{
			APIVersion: corev1alpha1.GroupVersion.String(), Kind: corev1alpha1.ScopeOf(set.GetNamespace()).Kind("ObjectSet"),
			Name: set.GetName(), UID: set.GetUID(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}, to.owners...)
	}

	maps.Copy(to.labels, r.wellKnown())
	to.labels[corev1alpha1.CacheLabel] = corev1alpha1.CacheLabelValue
	to.annotations[corev1alpha1.RevisionAnnotation] = strconv.FormatInt(set.ObjectSetSpec().Revision, 10)
	return to
}

// wellKnown are the package labels that the deployment selects. Package Operator sets the name in
// the manifest there, and this engine later sets the name of the Package.
func (r *Rollout) wellKnown() map[string]string {
	return apinames.Default.Inherited(r.Deployment.ObjectDeploymentSpec().Selector.MatchLabels)
}

// setMetadata has the labels that the deployment selects its revisions by. Without the annotation,
// this engine would assume on its return that the set might control objects.
func (r *Rollout) setMetadata(set corev1alpha1.GenericObjectSet) metadata {
	to := metadataOf(set)
	maps.Copy(to.labels, r.Deployment.ObjectDeploymentSpec().Selector.MatchLabels)
	to.labels[corev1alpha1.ObjectDeploymentLabel] = r.Deployment.GetName()
	delete(to.annotations, corev1alpha1.ObjectDeploymentUIDAnnotation)
	return to
}

// withoutFinalizer removes the finalizer of kinds whose finalizers only this engine removes.
func withoutFinalizer(obj metav1.Object) metadata {
	to := metadataOf(obj)
	to.finalizers = slices.DeleteFunc(to.finalizers, func(f string) bool { return f == corev1alpha1.CachedFinalizer })
	return to
}

// Patch is a JSON patch of one object's metadata.
type Patch struct {
	// Of is the object as it was read.
	Of   metav1.Object
	JSON []byte
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// metadata are the fields that a patch can change. Nil maps and lists are empty.
type metadata struct {
	owners              []metav1.OwnerReference
	labels, annotations map[string]string
	finalizers          []string
}

// metadataOf returns a copy of an object's fields.
func metadataOf(obj metav1.Object) metadata {
	return metadata{
		owners: slices.Clone(obj.GetOwnerReferences()), finalizers: slices.Clone(obj.GetFinalizers()),
		labels: maps.Collect(maps.All(obj.GetLabels())), annotations: maps.Collect(maps.All(obj.GetAnnotations())),
	}
}

// patch returns the patch from the object's metadata to the wanted metadata, or nil if they are
// equal.
func patch(obj metav1.Object, to metadata) (*Patch, error) {
	from := metadataOf(obj)
	ops := []operation{
		{"test", "/metadata/uid", obj.GetUID()},
		{"test", "/metadata/resourceVersion", obj.GetResourceVersion()},
	}

	tests := len(ops)
	for _, field := range []struct {
		name     string
		from, to any
	}{
		{"ownerReferences", from.owners, to.owners}, {"labels", from.labels, to.labels},
		{"annotations", from.annotations, to.annotations}, {"finalizers", from.finalizers, to.finalizers},
	} {
		if !equality.Semantic.DeepEqual(field.from, field.to) {
			ops = append(ops, operation{"add", "/metadata/" + field.name, field.to})
		}
	}

	if len(ops) == tests {
		return nil, nil
	}
	text, err := json.Marshal(ops)
	return &Patch{Of: obj, JSON: text}, err
}

// Disown returns the patch that makes an object outlive its owners, or nil if it has none of them.
// It removes their owner references, and the label that an engine watches.
func Disown(obj metav1.Object, owners sets.Set[types.UID]) (*Patch, error) {
	owned := func(ref metav1.OwnerReference) bool { return owners.Has(ref.UID) }
	if !slices.ContainsFunc(obj.GetOwnerReferences(), owned) {
		return nil, nil
	}
	to := metadataOf(obj)
	to.owners = slices.DeleteFunc(to.owners, owned)
	delete(to.labels, corev1alpha1.CacheLabel)

	return patch(obj, to)
}

// formerFields are the fields of a Package that Package Operator has.
var formerFields = []string{"image", "config", "component", "paused"}

// Losses describes the fields of a package that Package Operator does not know.
func Losses(pkg corev1alpha1.GenericPackage) (lost []string, err error) {
	raw, err := json.Marshal(pkg.PackageSpec())
	if err != nil {
		return nil, fmt.Errorf("read the spec of %s: %w", pkg.GetName(), err)
	}
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("read the spec of %s: %w", pkg.GetName(), err)
	}

	var fields []string
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		if !slices.Contains(formerFields, field) {
			fields = append(fields, "spec."+field)
		}
	}

	if len(fields) > 0 {
		lost = append(lost, strings.Join(fields, ", ")+" is ignored")
	}
	if pkg.PackageSpec().Image == "" {
		lost = append(lost, "spec.image is missing: the installed objects stay, and no new image is unpacked")
	}

	return lost, nil
}
