package objectsets

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
)

// delegated names an object that the agent of a class writes elsewhere.
type delegated struct {
	class string
	key   objects.Key
}

// PhaseName returns the name of the ObjectSetPhase of a phase. It is Package Operator's, if
// that is not too long.
func PhaseName(set, phase string) string {
	name := set + "-" + phase
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	hash := "-" + drift.Hash(name)
	return strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-len(hash)], "-.") + hash
}

// delegate returns a phase with a class. Its one object is the ObjectSetPhase.
func (l *loader) delegate(spec *corev1alpha1.ObjectSetTemplatePhase, all []corev1alpha1.ObjectSetObject) phases.Phase {
	phase := phases.Phase{Name: spec.Name}
	l.refuse(spec)
	for i := range all {
		if spec.Class != corev1alpha1.PhaseClassDefault {
			l.elsewhere(spec, &all[i])
		} else if d := l.object(spec.Name, &all[i]); d != nil {
			phase.Delegated = append(phase.Delegated, d)
		}
	}

	d, err := l.phaseObject(spec, all)
	if err != nil {
		l.problem("Phase %q: cannot make an ObjectSetPhase: %v", spec.Name, err)
		return phase
	}
	if errs := validation.IsDNS1123Subdomain(d.Key.Name); len(errs) > 0 {
		l.problem("Phase %q: with a class, its name is a part of the name of an ObjectSetPhase: %s", spec.Name, errs[0])
		return phase
	}
	if first, twice := l.at[d.Key]; twice {
		l.problem("Phase %q, %s: Duplicate Object, it is in phase %q already: remove one of them", spec.Name, d.Key, first)
		return phase
	}

	l.at[d.Key] = spec.Name
	phase.Objects = []*objects.Desired{d}
	return phase
}

// refuse checks features that a phase with a class cannot have: the ObjectSetPhase is the only
// source about its objects, and its agent has its own rights.
func (l *loader) refuse(spec *corev1alpha1.ObjectSetTemplatePhase) {
	template := l.set.ObjectSetSpec()
	if errs := validation.IsValidLabelValue(spec.Class); len(errs) > 0 {
		l.problem("Phase %q: class %.100q is not a valid label value: %s", spec.Name, spec.Class, errs[0])
	}
	if len(spec.SecretSlices) > 0 {
		l.problem("Phase %q: has objects with sensitive values, which would be readable in its ObjectSetPhase: "+
			"remove the class, move them to a phase without one, or set sensitive: false if the values are not secret", spec.Name)
	}

	if template.TargetRef != nil {
		l.problem("Phase %q: a phase with a class cannot be in another cluster: remove the class, or targetRef", spec.Name)
	}
	if template.ServiceAccountName != "" && spec.Class != corev1alpha1.PhaseClassDefault {
		l.problem("Phase %q: the agent of class %q writes with its own rights, not with ServiceAccount %s's: remove the class, or serviceAccountName",
			spec.Name, spec.Class, template.ServiceAccountName)
	}
}

// elsewhere checks an object that an agent writes into another cluster.
func (l *loader) elsewhere(spec *corev1alpha1.ObjectSetTemplatePhase, o *corev1alpha1.ObjectSetObject) {
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(o.Object.Raw, &u.Object); err != nil {
		l.problem("Phase %q: an object is not valid JSON: %v", spec.Name, err)
		return
	}

	gvk := u.GroupVersionKind()
	key := objects.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
	where := fmt.Sprintf("Phase %q, %s", spec.Name, key)
	if gvk.Kind == "" || gvk.Version == "" || key.Name == "" {
		l.problem("%s: apiVersion, kind and metadata.name are required", where)
		return
	}
	if why := NameProblem(gvk, key); why != "" {
		l.problem("Phase %q, %.100s: %s", spec.Name, key, why)
		return
	}
	if len(u.GetOwnerReferences()) > 0 {
		l.problem("%s: metadata.ownerReferences must be empty: the agent sets them", where)
	}

	id := delegated{spec.Class, key}
	if first, twice := l.remote[id]; twice {
		l.problem("%s: Duplicate Object, it is in phase %q already: remove one of them", where, first)
	}
	l.remote[id] = spec.Name
}

// phaseObject returns the ObjectSetPhase of a phase.
func (l *loader) phaseObject(spec *corev1alpha1.ObjectSetTemplatePhase, all []corev1alpha1.ObjectSetObject) (*objects.Desired, error) {
	scope, from := corev1alpha1.ScopeOf(l.set.GetNamespace()), l.set.ObjectSetSpec()
	if all == nil {
		all = []corev1alpha1.ObjectSetObject{}
	}

	gvk := corev1alpha1.GroupVersion.WithKind(scope.Kind("ObjectSetPhase"))
	labels := map[string]string{}
	maps.Copy(labels, l.set.GetLabels())
	labels[corev1alpha1.PhaseClassLabel] = spec.Class
	metadata := map[string]any{"name": PhaseName(l.set.GetName(), spec.Name), "labels": labels}
	if l.set.GetNamespace() != "" {
		metadata["namespace"] = l.set.GetNamespace()
	}
	if annotations := phaseAnnotations(l.set); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": metadata,
		"spec": corev1alpha1.ObjectSetPhaseSpec{
			Revision: from.Revision, Previous: from.Previous, AvailabilityProbes: from.AvailabilityProbes, Objects: all,
		},
	})
	if err != nil {
		return nil, err
	}

	if len(raw) > limits.ClassPhaseBytes {
		l.problem("Phase %q: with a class, it is stored as one ObjectSetPhase, which has %d bytes; the limit is %d: split the phase, or remove its class",
			spec.Name, len(raw), limits.ClassPhaseBytes)
	}

	d := &objects.Desired{
		Key:     objects.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: l.set.GetNamespace(), Name: metadata["name"].(string)},
		Version: gvk.Version, Collision: objects.CollisionProtectionPrevent,
		Delegate: &objects.Delegate{Class: spec.Class, Objects: len(all), Set: objects.Owner{
			Names:    apinames.Default,
			OwnerKey: objects.OwnerKey{Kind: scope.Kind("ObjectSet"), Namespace: l.set.GetNamespace(), Name: l.set.GetName()}, UID: l.set.GetUID(),
		}},
	}

	return d, engine.SetContent(d, raw)
}

// phaseAnnotations returns the annotations of the ObjectSetPhases of a set. They include the
// account, because an orphaned ObjectSetPhase continues without its set.
func phaseAnnotations(set corev1alpha1.GenericObjectSet) map[string]string {
	annotations := inherited(set.GetAnnotations())
	if account := set.ObjectSetSpec().ServiceAccountName; account != "" {
		annotations[corev1alpha1.ServiceAccountAnnotation] = account
	}
	return annotations
}

// inherited returns the annotations of a set that its ObjectSetPhases have too: its origin, and
// annotations other than the engine's.
func inherited(all map[string]string) map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, all)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		switch key {
		case corev1alpha1.PackageSourceImageAnnotation, corev1alpha1.PackageConfigAnnotation, corev1alpha1.PackageDigestAnnotation,
			corev1alpha1.PackageComponentAnnotation, corev1alpha1.HashAnnotation:
			return false
		case "kubectl.kubernetes.io/last-applied-configuration":
			return true
		}
		domain, _, _ := strings.Cut(key, "/")
		return domain == corev1alpha1.GroupVersion.Group || strings.HasSuffix(domain, "."+corev1alpha1.GroupVersion.Group)
	})
	return annotations
}
