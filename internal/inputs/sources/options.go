package sources

import (
	"cmp"
	"fmt"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/loader"
)

// Options returns the options for loading a Package with the values of its sources. The caller adds
// the options that depend on the cluster.
func Options(pkg corev1alpha1.GenericPackage, values *Values) loader.Options {
	spec := pkg.PackageSpec()
	o := loader.Options{
		Package: manifestsv1alpha1.TemplateContextPackage{
			Metadata: manifestsv1alpha1.TemplateContextObjectMeta{
				Name: pkg.GetName(), Namespace: pkg.GetNamespace(), Labels: pkg.GetLabels(), Annotations: pkg.GetAnnotations(),
			},
			Image: spec.Image,
		},
		Component: spec.Component, Config: values.Config, Sensitive: values.Sensitive, FromSecrets: values.FromSecrets,
		DefaultNamespace: spec.DefaultNamespace, CollisionProtection: spec.CollisionProtection, IgnoredFields: spec.IgnoredFields,
	}

	o.Namespace, o.Package.Metadata.Namespace = pkg.GetNamespace(), spec.TargetRef.NamespaceOf(pkg.GetNamespace())
	if pkg.GetNamespace() == "" && spec.TargetRef != nil {
		o.DefaultNamespace = cmp.Or(spec.TargetRef.Namespace, spec.DefaultNamespace)
	}
	if spec.CommonMetadata != nil {
		o.CommonMetadata = loader.CommonMetadata{Labels: spec.CommonMetadata.Labels, Annotations: spec.CommonMetadata.Annotations}
	}

	for i, text := range values.Patches {
		if text == "" {
			continue // an optional source that does not exist
		}
		patch := loader.Patch{Patch: text, Source: fmt.Sprintf("spec.patches[%d]", i)}
		if target := spec.Patches[i].Target; target != nil {
			patch.Target = loader.PatchTarget{Group: target.Group, Kind: target.Kind, Name: target.Name, LabelSelector: target.LabelSelector}
		}
		o.Patches = append(o.Patches, patch)
	}

	return o
}
