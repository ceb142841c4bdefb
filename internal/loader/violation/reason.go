package violation

import (
	"slices"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Reason is the fixed first part of a violation's text.
type Reason string

// These reasons also exist in Package Operator.
const (
	ReasonNoFiles             Reason = "Package image contains no files. Might be corrupted."
	ReasonManifestNotFound    Reason = "PackageManifest not found"
	ReasonManifestDuplicated  Reason = "PackageManifest present multiple times"
	ReasonLockDuplicated      Reason = "PackageManifestLock present multiple times"
	ReasonUnknownGVK          Reason = "unknown GVK"
	ReasonManifestInvalid     Reason = "PackageManifest invalid"
	ReasonLockInvalid         Reason = "PackageManifestLock invalid"
	ReasonInvalidYAML         Reason = "Invalid YAML"
	ReasonMissingPhase        Reason = "Missing " + corev1alpha1.PhaseAnnotation + " Annotation"
	ReasonUnknownPhase        Reason = "Phase name not found in manifest"
	ReasonMissingGVK          Reason = "GroupVersionKind not set"
	ReasonDuplicateObject     Reason = "Duplicate Object"
	ReasonLabelsInvalid       Reason = "Labels invalid"
	ReasonUnsupportedScope    Reason = "Package unsupported scope"
	ReasonComponentsDisabled  Reason = "Components not enabled"
	ReasonComponentNotFound   Reason = "Component not found"
	ReasonComponentPath       Reason = "Invalid component path"
	ReasonComponentsNested    Reason = "Nesting multi-component packages not allowed"
	ReasonComponentsStray     Reason = "The components directory may only contain folders and dot files"
	ReasonLockMissing         Reason = "Missing image in manifest.lock.yaml, but using PackageManifest.spec.images"
	ReasonLockImageMissing    Reason = "image missing from lockfile"
	ReasonLockImageDifferent  Reason = "image does not match lockfile"
	ReasonFixtureMismatch     Reason = "File mismatch against fixture"
	ReasonKubeconform         Reason = "Kubeconform rejected schema"
	ReasonInvalidCELCondition Reason = "The CEL expression in " + corev1alpha1.ConditionAnnotation + " annotation is invalid."
)

// These reasons exist only in this engine.
const (
	ReasonConfigInvalid     Reason = "Config invalid"
	ReasonConstraintUnmet   Reason = "Constraint not met"
	ReasonTemplate          Reason = "Template error"
	ReasonFilterInvalid     Reason = "Filter invalid"
	ReasonObjectInvalid     Reason = "Object invalid"
	ReasonAnnotationInvalid Reason = "Annotation invalid"
	ReasonObjectScope       Reason = "Object outside the scope of the package"
	ReasonProbeInvalid      Reason = "Availability probe invalid"
	ReasonLimit             Reason = "Limit exceeded"
	ReasonUnsupported       Reason = "Not supported by this version"
	ReasonSourceMissing     Reason = "Source missing"
	ReasonSourceInvalid     Reason = "Source invalid"
	ReasonRepositoryInvalid Reason = "Repository invalid"
	ReasonPatchInvalid      Reason = "Patch invalid"
	ReasonMetadataInvalid   Reason = "Common metadata invalid"
	ReasonSecretExposed     Reason = "Secret value outside of Secrets"
)

// remedies apply to violations without their own remedy.
var remedies = map[Reason]string{
	ReasonInvalidYAML:         "Correct the YAML at this place.",
	ReasonUnknownPhase:        "Name one of the manifest's phases, or add it there.",
	ReasonLimit:               "Split the file, or leave out parts that the package does not need.",
	ReasonTemplate:            "Correct the template; `kubectl package render` renders it.",
	ReasonUnknownGVK:          "Correct apiVersion and kind.",
	ReasonManifestInvalid:     "Correct the field in the manifest.",
	ReasonRepositoryInvalid:   "Correct the field in the repository file.",
	ReasonLockInvalid:         "Correct the field in the lock file.",
	ReasonLabelsInvalid:       "Correct the label.",
	ReasonConfigInvalid:       "Correct spec.config of the Package.",
	ReasonConstraintUnmet:     "Install the package in a cluster that meets its constraints.",
	ReasonObjectInvalid:       "Correct the object.",
	ReasonAnnotationInvalid:   "Correct the annotation.",
	ReasonProbeInvalid:        "Correct the probe.",
	ReasonInvalidCELCondition: "Write a CEL expression of type bool.",
	ReasonFilterInvalid:       "Correct the filter.",
	ReasonSourceMissing:       "Create it, or set optional: true.",
	ReasonSourceInvalid:       "Correct it there.",
	ReasonPatchInvalid:        "Correct spec.patches of the Package.",
	ReasonMetadataInvalid:     "Correct spec.commonMetadata of the Package.",
	ReasonSecretExposed: "Render it into a Secret and refer to that, or annotate the object with " +
		corev1alpha1.ExposeSecretValuesAnnotation + `: "true".`,
	ReasonNoFiles: "Build the image with all files of the package below /package.",
}

// stages are the condition reasons in the order of loading a package. Other reasons are load
// errors.
var stages = []struct {
	condition string
	reasons   []Reason
}{
	{corev1alpha1.ReasonConfigSourceMissing, []Reason{ReasonSourceMissing}},
	{corev1alpha1.ReasonConfigSourceInvalid, []Reason{ReasonSourceInvalid}},
	{corev1alpha1.ReasonLoadError, nil},
	{corev1alpha1.ReasonUnsupported, []Reason{ReasonUnsupported}},
	{corev1alpha1.ReasonConstraintsFailed, []Reason{ReasonConstraintUnmet}},
	{corev1alpha1.ReasonConfigInvalid, []Reason{ReasonConfigInvalid}},
	{corev1alpha1.ReasonTemplateError, []Reason{ReasonTemplate, ReasonFilterInvalid}},
	{corev1alpha1.ReasonPatchInvalid, []Reason{ReasonPatchInvalid, ReasonMetadataInvalid}},
	{corev1alpha1.ReasonObjectInvalid, []Reason{
		ReasonMissingPhase, ReasonUnknownPhase, ReasonMissingGVK, ReasonDuplicateObject, ReasonLabelsInvalid,
		ReasonInvalidCELCondition, ReasonObjectInvalid, ReasonAnnotationInvalid, ReasonObjectScope, ReasonSecretExposed,
	}},
}

// ConditionReason returns the reason for the condition Invalid.
func (r Reason) ConditionReason() string {
	for _, stage := range stages {
		if slices.Contains(stage.reasons, r) {
			return stage.condition
		}
	}
	return corev1alpha1.ReasonLoadError
}
