package packages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// newDeployment returns the deployment of a Package with neither settings nor
// content.
func newDeployment(pkg corev1alpha1.GenericPackage) corev1alpha1.GenericObjectDeployment {
	dep := corev1alpha1.ScopeOf(pkg.GetNamespace()).NewObjectDeployment()
	dep.SetNamespace(pkg.GetNamespace())
	dep.SetName(pkg.GetName())
	dep.SetFinalizers([]string{corev1alpha1.CachedFinalizer})
	spec := dep.ObjectDeploymentSpec()
	spec.Selector.MatchLabels = selection(pkg)
	spec.Template.Metadata.Labels = selection(pkg)
	return dep
}

// selection are the labels that stay the same over all revisions.
func selection(pkg corev1alpha1.GenericPackage) map[string]string {
	return map[string]string{
		corev1alpha1.PackageLabel:         pkg.GetName(),
		corev1alpha1.PackageInstanceLabel: pkg.GetName(),
	}
}

// follow makes the deployment follow what the Package says about it apart from
// its content: who controls it, pause, limits, retries. Values that the Package leaves
// open are the defaults.
func follow(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) {
	own := metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(),
		Kind:       corev1alpha1.ScopeOf(pkg.GetNamespace()).Kind("Package"),
		Name:       pkg.GetName(), UID: pkg.GetUID(), Controller: ptr.To(true),
	}
	if outdated(pkg, dep) {
		stamp(dep, pkg) // by another client: the Package was looked at
	}
	propagateRetry(dep, pkg)
	refs := slices.DeleteFunc(slices.Clone(dep.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return ref.UID == pkg.GetUID() || namesake(&ref, pkg)
	})
	dep.SetOwnerReferences(append([]metav1.OwnerReference{own}, refs...))
	from, spec := pkg.PackageSpec(), dep.ObjectDeploymentSpec()
	spec.Paused, spec.DriftPolicy = from.Paused, from.DriftPolicy
	spec.ProgressDeadlineSeconds = from.ProgressDeadlineSeconds
	spec.RevisionHistoryLimit = ptr.To(ptr.Deref(from.RevisionHistoryLimit, corev1alpha1.DefaultRevisionHistoryLimit))
}

// propagateRetry copies the retry annotation of a Package to its deployment, and reports
// whether that changed it.
func propagateRetry(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) bool {
	value := retryValue(pkg)
	if value == "" || value == dep.GetAnnotations()[corev1alpha1.RetryAnnotation] {
		return false
	}
	annotations := orMake(dep.GetAnnotations())
	annotations[corev1alpha1.RetryAnnotation] = value
	dep.SetAnnotations(annotations)
	return true
}

// stamp records which generation of the Package the deployment is written for.
func stamp(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) {
	annotations := orMake(dep.GetAnnotations())
	annotations[corev1alpha1.PackageGenerationAnnotation] = strconv.FormatInt(pkg.GetGeneration(), 10)
	dep.SetAnnotations(annotations)
}

// outdated reports whether a deployment was written for a later generation of the
// Package than this one: a list may be answered from a cache of the API server
// that is behind.
func outdated(pkg corev1alpha1.GenericPackage, dep corev1alpha1.GenericObjectDeployment) bool {
	if dep == nil || !metav1.IsControlledBy(dep, pkg) {
		return false // generations of another Package count anew
	}
	written, err := strconv.ParseInt(dep.GetAnnotations()[corev1alpha1.PackageGenerationAnnotation], 10, 64)
	return err == nil && written > pkg.GetGeneration()
}

// fill gives the deployment the content of the package. The template stays as it
// is where it means the same.
func fill(
	dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage, unpacked fingerprint,
	content *Content, template corev1alpha1.ObjectSetTemplateSpec,
) error {
	config, err := configOf(pkg)
	if err != nil {
		return err
	}
	annotations := orMake(dep.GetAnnotations())
	image := cmp.Or(content.SourceImage, pkg.PackageSpec().Image)
	first := len(dep.ObjectDeploymentSpec().Template.Spec.Phases) == 0
	imageChanged := annotations[corev1alpha1.PackageSourceImageAnnotation] != image
	configChanged := annotations[corev1alpha1.PackageConfigAnnotation] != config

	spec := &dep.ObjectDeploymentSpec().Template.Spec
	same := false
	if !equality.Semantic.DeepEqual(spec, &corev1alpha1.ObjectSetTemplateSpec{}) {
		if same, err = sameTemplate(spec, &template); err != nil {
			return err
		}
	}
	if !same {
		*spec = template
	}
	digest, err := templateDigest(spec)
	if err != nil {
		return err
	}
	if first || !same || imageChanged || configChanged {
		annotations[corev1alpha1.ChangeCauseAnnotation] = changeCause(content, first, imageChanged, configChanged)
	}
	annotations[corev1alpha1.PackageSourceImageAnnotation] = image
	annotations[corev1alpha1.PackageConfigAnnotation] = config
	annotations[corev1alpha1.UnpackedHashAnnotation] = unpacked.String()
	annotations[corev1alpha1.TemplateDigestAnnotation] = digest
	setOrDelete(annotations, corev1alpha1.PackageDigestAnnotation, content.Resolved.Digest)
	setOrDelete(annotations, corev1alpha1.PackageComponentAnnotation, pkg.PackageSpec().Component)
	for _, phase := range template.Phases {
		if len(phase.Slices) > 0 {
			annotations[corev1alpha1.SlicedAnnotation] = "true"
		}
		if len(phase.SecretSlices) > 0 {
			annotations[corev1alpha1.SecretSlicedAnnotation] = "true"
		}
	}
	dep.SetAnnotations(annotations)

	labels := orMake(dep.GetLabels())
	for label := range objects.WellKnown(labels) {
		delete(labels, label)
	}
	maps.Copy(labels, content.Labels)
	maps.Copy(labels, selection(pkg))
	dep.SetLabels(labels)
	return nil
}

func setOrDelete(annotations map[string]string, key, value string) {
	if value == "" {
		delete(annotations, key)
		return
	}
	annotations[key] = value
}

func orMake(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// configOf returns the config as the annotation has it.
func configOf(pkg corev1alpha1.GenericPackage) (string, error) {
	config := pkg.PackageSpec().Config
	if config == nil || len(config.Raw) == 0 {
		return "null", nil
	}
	raw, err := canonical(config.Raw)
	if err != nil {
		return "", fmt.Errorf("spec.config is not valid JSON: %w", err)
	}
	return string(raw), nil
}

// changeCause is the text that the history of revisions shows.
func changeCause(content *Content, first, image, config bool) string {
	switch {
	case first:
		return fmt.Sprintf("Installing %s package.", content.Resolved.PackageName)
	case image && config:
		return "Package source image and config changed."
	case image:
		return "Package source image changed."
	case config:
		return "Package config changed."
	}
	return "Package content changed."
}

// sameTemplate reports whether two templates mean the same: the order of keys in
// an object, null fields, and values that the API server defaults or leaves out make
// no difference.
func sameTemplate(a, b *corev1alpha1.ObjectSetTemplateSpec) (bool, error) {
	x, err := normal(a)
	if err != nil {
		return false, err
	}
	y, err := normal(b)
	if err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(x, y), nil
}

func normal(spec *corev1alpha1.ObjectSetTemplateSpec) (*corev1alpha1.ObjectSetTemplateSpec, error) {
	out := spec.DeepCopy()
	for i := range out.Phases {
		for j := range out.Phases[i].Objects {
			object := &out.Phases[i].Objects[j]
			raw, err := stored(object.Object.Raw)
			if err != nil {
				return nil, fmt.Errorf("object %d of phase %q is not valid JSON: %w", j, out.Phases[i].Name, err)
			}
			object.Object.Raw = raw
			if object.CollisionProtection == "" {
				object.CollisionProtection = corev1alpha1.CollisionProtectionPrevent
			}
		}
	}
	return out, nil
}

// stored returns an object as the API server keeps it within a template, with
// sorted keys: of metadata it keeps what it knows and what is not empty, and a merge
// patch takes null fields out.
func stored(raw []byte) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	if meta, err := knownMetadata(object["metadata"]); err == nil {
		object["metadata"] = meta // what is no metadata is refused later, by who reads it
	}
	dropNulls(object)
	return json.Marshal(object)
}

func knownMetadata(meta any) (map[string]any, error) {
	encoded, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	typed := metav1.ObjectMeta{}
	if err := json.Unmarshal(encoded, &typed); err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
}

// dropNulls takes fields that are null out of a value.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool { return field == nil })
		for _, field := range value {
			dropNulls(field)
		}
	case []any:
		for _, element := range value {
			dropNulls(element)
		}
	}
}
