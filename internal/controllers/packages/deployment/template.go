package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/revisions"
)

// New returns a deployment for a Package, without content.
func New(pkg corev1alpha1.GenericPackage) corev1alpha1.GenericObjectDeployment {
	dep := corev1alpha1.ScopeOf(pkg.GetNamespace()).NewObjectDeployment()
	dep.SetNamespace(pkg.GetNamespace())
	dep.SetName(pkg.GetName())
	dep.SetFinalizers([]string{corev1alpha1.CachedFinalizer})
	spec := dep.ObjectDeploymentSpec()
	spec.Selector.MatchLabels = Selection(pkg)
	spec.Template.Metadata.Labels = Selection(pkg)
	return dep
}

// Selection returns the labels that the deployment of a Package selects its revisions by.
func Selection(pkg corev1alpha1.GenericPackage) map[string]string {
	return map[string]string{
		corev1alpha1.PackageLabel:         pkg.GetName(),
		corev1alpha1.PackageInstanceLabel: pkg.GetName(),
	}
}

// ControllerReference does not block the deletion of the owner: the manager orders teardown.
func ControllerReference(namespacedKind string, owner client.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: corev1alpha1.GroupVersion.String(), Kind: corev1alpha1.ScopeOf(owner.GetNamespace()).Kind(namespacedKind),
		Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true),
	}
}

// CopySettings copies the settings of the Package, that is, everything but its content: controller,
// account, pause, limits, retries. Without change, the account stays the same.
func CopySettings(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage, account string, change bool) {
	if Outdated(pkg, dep) {
		SetGeneration(dep, pkg) // another client changed it: the Package was read again
	}

	CopyRetry(dep, pkg)
	controller := ControllerReference("Package", pkg)
	if metav1.IsControlledBy(dep, pkg) {
		controller = *metav1.GetControllerOf(dep) // as an earlier engine wrote it
	}

	refs := slices.DeleteFunc(slices.Clone(dep.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return ref.UID == pkg.GetUID() || sameName(&ref, pkg)
	})
	dep.SetOwnerReferences(append([]metav1.OwnerReference{controller}, refs...))
	from, spec := pkg.PackageSpec(), dep.ObjectDeploymentSpec()
	if change && account != spec.Template.Spec.ServiceAccountName {
		spec.Template.Spec.ServiceAccountName = account
	}

	spec.Paused, spec.DriftPolicy, spec.ArchivalPolicy = from.Paused, from.DriftPolicy, from.ArchivalPolicy
	spec.ProgressDeadlineSeconds = from.ProgressDeadlineSeconds
	spec.RevisionActivationPolicy, spec.OnDeadline = from.RevisionActivationPolicy, from.OnDeadline
	spec.RevisionHistoryLimit = ptr.To(ptr.Deref(from.RevisionHistoryLimit, corev1alpha1.DefaultRevisionHistoryLimit))
}

// CopyRetry copies the retry annotation, and reports whether that changed the deployment.
func CopyRetry(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) bool {
	value := background.RetryValue(pkg)
	if value == "" || value == dep.GetAnnotations()[corev1alpha1.RetryAnnotation] {
		return false
	}
	objectsets.Annotate(dep, corev1alpha1.RetryAnnotation, value)
	return true
}

// SetGeneration records for which generation of the Package the deployment is written.
func SetGeneration(dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage) {
	objectsets.Annotate(dep, corev1alpha1.PackageGenerationAnnotation, strconv.FormatInt(pkg.GetGeneration(), 10))
}

// Outdated reports whether a deployment was written for a later generation, because lists can be
// from a stale cache.
func Outdated(pkg corev1alpha1.GenericPackage, dep corev1alpha1.GenericObjectDeployment) bool {
	if dep == nil || !metav1.IsControlledBy(dep, pkg) {
		return false // another Package has generations of its own
	}
	written, err := strconv.ParseInt(dep.GetAnnotations()[corev1alpha1.PackageGenerationAnnotation], 10, 64)
	return err == nil && written > pkg.GetGeneration()
}

// Fill gives the deployment the content of the package, and keeps a template that means the same.
func Fill(
	dep corev1alpha1.GenericObjectDeployment, pkg corev1alpha1.GenericPackage, unpacked load.Fingerprint,
	loaded *load.Content, template corev1alpha1.ObjectSetTemplateSpec,
) error {
	config, err := configOf(pkg)
	if err != nil {
		return err
	}

	digest, err := templateDigest(&template)
	if err != nil {
		return err
	}

	spec := &dep.ObjectDeploymentSpec().Template.Spec
	last, err := templateDigest(spec)
	if err != nil {
		return err
	}

	first, same := len(spec.Phases) == 0, last == digest
	stored := slices.Concat(spec.Phases, template.Phases) // slices of an earlier engine have no annotation yet
	if !same {
		*spec = template
	}

	// The image of the spec rather than of a mirror, because an undo writes it back into the spec.
	image, before := loaded.Resolved.Image, dep.GetAnnotations()
	imageChanged := before[corev1alpha1.PackageSourceImageAnnotation] != image
	configChanged := before[corev1alpha1.PackageConfigAnnotation] != config
	annotations := map[string]string{
		corev1alpha1.PackageSourceImageAnnotation: image,
		corev1alpha1.PackageConfigAnnotation:      config,
		corev1alpha1.UnpackedHashAnnotation:       unpacked.String(),
		corev1alpha1.TemplateDigestAnnotation:     digest,
		corev1alpha1.PackageDigestAnnotation:      loaded.Resolved.Digest,
		corev1alpha1.PackageComponentAnnotation:   pkg.PackageSpec().Component,
	}

	if first || !same || imageChanged || configChanged {
		annotations[corev1alpha1.ChangeCauseAnnotation] = changeCause(loaded, first, imageChanged, configChanged)
	}

	maps.Copy(annotations, SlicedAnnotations(stored))
	for key, value := range annotations {
		objectsets.Annotate(dep, key, value)
	}

	labels := map[string]string{}
	maps.Copy(labels, dep.GetLabels())
	for label := range apinames.Default.Inherited(labels) {
		delete(labels, label)
	}

	maps.Copy(labels, loaded.Labels)
	maps.Copy(labels, Selection(pkg))
	dep.SetLabels(labels)
	return nil
}

// SlicedAnnotations are the annotations of a deployment with these phases.
func SlicedAnnotations(phases []corev1alpha1.ObjectSetTemplatePhase) map[string]string {
	annotations := map[string]string{}
	for _, phase := range phases {
		if len(phase.Slices) > 0 {
			annotations[corev1alpha1.SlicedAnnotation] = "true"
		}
		if len(phase.SecretSlices) > 0 {
			annotations[corev1alpha1.SecretSlicedAnnotation] = "true"
		}
	}
	return annotations
}

// configOf returns the configuration in canonical form, so that another order of keys is not a
// change.
func configOf(pkg corev1alpha1.GenericPackage) (string, error) {
	config := pkg.PackageSpec().Config
	if config == nil || len(config.Raw) == 0 {
		return "null", nil
	}
	raw, err := load.Canonical(config.Raw)
	if err != nil {
		return "", fmt.Errorf("spec.config is not valid JSON: %w", err)
	}
	return string(raw), nil
}

// changeCause returns the text for kubernetes.io/change-cause, in Package Operator's words.
func changeCause(loaded *load.Content, first, image, config bool) string {
	switch {
	case first:
		return fmt.Sprintf("Installing %s package.", loaded.Resolved.PackageName)
	case image && config:
		return "Package source image and config changed."
	case image:
		return "Package source image changed."
	case config:
		return "Package config changed."
	}
	return "Package content changed."
}

// templateDigest identifies the meaning of a template: order of keys, null fields and defaults make
// no difference. It does not cover the account, a setting that changes without a load.
func templateDigest(spec *corev1alpha1.ObjectSetTemplateSpec) (string, error) {
	content := *spec
	content.ServiceAccountName = ""
	template, err := revisions.Decoded(content)
	if err != nil {
		return "", err
	}

	phases, _ := template["phases"].([]any)
	for i := range phases {
		objects, _ := phases[i].(map[string]any)["objects"].([]any)
		for j := range objects {
			if !normalize(objects[j].(map[string]any)) {
				return "", fmt.Errorf("object %d of phase %q is not an object", j, spec.Phases[i].Name)
			}
		}
	}

	return load.HashJSON(template)
}

// normalize changes an object of a template to the form that the API server stores, with the
// defaults, and reports whether it is an object.
func normalize(entry map[string]any) bool {
	object, is := entry["object"].(map[string]any)
	if !is {
		return false
	}
	if meta, err := knownMetadata(object["metadata"]); err == nil {
		object["metadata"] = meta // invalid metadata is rejected later
	}
	stored(object)
	if entry["collisionProtection"] == nil {
		entry["collisionProtection"] = corev1alpha1.CollisionProtectionPrevent
	}
	return true
}

// knownMetadata drops unknown fields of metadata, as the API server does when it stores the object.
func knownMetadata(meta any) (map[string]any, error) {
	if fields, is := meta.(map[string]any); is && isPlain(fields) {
		return fields, nil
	}
	return typedMetadata(meta)
}

// isPlain reports whether metadata has only names, labels and annotations, as almost all metadata
// has: the API server stores these as they are, and to find that out by types takes several times as
// long.
func isPlain(meta map[string]any) bool {
	for name, field := range meta {
		plain := false
		switch name {
		case "name", "namespace":
			plain = field != "" && isText(field)
		case "labels", "annotations":
			values, isMap := field.(map[string]any)
			plain = isMap && len(values) > 0
			for _, value := range values {
				plain = plain && isText(value)
			}
		}
		if !plain {
			return false
		}
	}
	return true
}

func isText(value any) bool {
	_, is := value.(string)
	return is
}

func typedMetadata(meta any) (map[string]any, error) {
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

// stored returns a decoded value as the API server returns it: without null fields, and with one
// zero.
func stored(value any) any {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool { return field == nil })
		for name, field := range value {
			value[name] = stored(field)
		}
	case []any:
		for i, element := range value {
			value[i] = stored(element)
		}
	case float64:
		if value == 0 {
			return int64(0)
		}
	}
	return value
}
