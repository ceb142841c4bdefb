package support

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Fields are those of an object that an archive has: a name leads to the fields below it, which hold for each element of a
// list; nil is the whole value.
type Fields map[string]Fields

// fields parses paths such as "status.conditions". A path has all below it.
func fields(paths ...string) Fields {
	root := Fields{}
	for _, path := range paths {
		at := root
		names := strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			if at[name] == nil {
				at[name] = Fields{}
			}
			at = at[name]
		}
		at[names[len(names)-1]] = nil
	}
	return root
}

// with adds paths to those of other fields.
func (f Fields) with(paths ...string) Fields {
	both := maps.Clone(f)
	for name, below := range fields(paths...) {
		if old, is := both[name]; is && old != nil && below != nil {
			old = maps.Clone(old)
			maps.Copy(old, below)
			below = old
		}
		both[name] = below
	}
	return both
}

var (
	metadata = fields("apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.generation", "metadata.resourceVersion",
		"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.finalizers", "metadata.ownerReferences", "metadata.labels", "metadata.annotations")
	references = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}
	packages   = metadata.with("status", "spec.image", "spec.packageRef", "spec.downgradePolicy", "spec.serviceAccountName", "spec.targetRef",
		"spec.imagePullSecrets", "spec.imagePullPolicy", "spec.interval", "spec.configFrom", "spec.component", "spec.defaultNamespace",
		"spec.collisionProtection", "spec.ignoredFields", "spec.driftPolicy", "spec.deletionPolicy", "spec.dependencies", "spec.upgradePolicy",
		"spec.paused", "spec.progressDeadlineSeconds", "spec.revisionHistoryLimit", "spec.revisionActivationPolicy", "spec.onDeadline", "spec.archivalPolicy")
	template = []string{"phases.name", "phases.class", "phases.slices", "phases.secretSlices", "availabilityProbes", "successDelaySeconds", "serviceAccountName", "targetRef"}
)

// Of returns the fields that an archive has of a kind: what says how it stands, and nothing that a user wrote as a value. Objects
// of packages are references alone.
func Of(kind string) Fields {
	within := func(at string, paths []string) (full []string) {
		for _, path := range paths {
			full = append(full, at+"."+path)
		}
		return full
	}
	switch strings.TrimPrefix(kind, "Cluster") {
	case "Package":
		return packages
	case "ObjectDeployment":
		return metadata.with(slices.Concat(within("spec.template.spec", template), within("spec.template.spec.phases.objects.object", references), []string{
			"status", "spec.paused", "spec.progressDeadlineSeconds", "spec.revisionHistoryLimit", "spec.driftPolicy", "spec.revisionActivationPolicy", "spec.onDeadline", "spec.archivalPolicy",
		})...)
	case "ObjectSet":
		return metadata.with(slices.Concat(within("spec", template), within("spec.phases.objects.object", references), []string{
			"status", "spec.lifecycleState", "spec.previous", "spec.revision",
		})...)
	case "ObjectSetPhase":
		return metadata.with(slices.Concat(within("spec.objects.object", references), []string{"status", "spec.paused", "spec.revision", "spec.previous", "spec.availabilityProbes"})...)
	case "ObjectTemplate":
		return metadata.with("status", "spec.sources")
	case "PackageRepository":
		return metadata.with("status", "spec.source.image", "spec.source.http", "spec.source.git", "spec.source.inline.filesFrom",
			"spec.interval", "spec.paused", "spec.priority", "spec.namespaceSelector")
	case "HostedPackage", "HostedClusterPackage":
		return metadata.with("status", "spec.strategy", "spec.hostedClusterSelector", "spec.partition", "spec.template.spec.image")
	case "ImageConfig":
		return metadata.with("status", "spec.matchImages", "spec.rewrite", "spec.pullSecretRef", "spec.verification.mode", "spec.verification.authorities.name")
	case "Deployment":
		return metadata.with("status", "spec.replicas", "spec.strategy", "spec.template.spec.containers.name", "spec.template.spec.containers.image",
			"spec.template.spec.containers.args", "spec.template.spec.containers.env.name", "spec.template.spec.containers.resources",
			"spec.template.spec.serviceAccountName")
	case "Pod":
		return metadata.with("status", "spec.nodeName", "spec.containers.name", "spec.containers.image", "spec.containers.resources")
	case "Lease":
		return metadata.with("spec")
	case "Event":
		return metadata.with("type", "reason", "action", "message", "note", "count", "involvedObject", "regarding", "reportingComponent", "source",
			"firstTimestamp", "lastTimestamp", "eventTime", "series")
	}
	return metadata
}

// ownNames begin labels and annotations that are in an archive; withheld are those that hold values of users.
var (
	ownNames = []string{"package-operator.run/", "packages.package-operator.run/", "slices.package-operator.run/", "required-by.package-operator.run/", "app.kubernetes.io/"}
	withheld = []string{corev1alpha1.PackageConfigAnnotation}
)

// Keep returns the parts of an object that its fields name, with texts as show returns them. Of labels and annotations only the
// engine's own are kept.
func Keep(object map[string]any, f Fields, show func(string) string) map[string]any {
	kept, _ := keep(object, f, show).(map[string]any)
	if meta, ok := kept["metadata"].(map[string]any); ok {
		for _, field := range []string{"labels", "annotations"} {
			if all, ok := meta[field].(map[string]any); ok {
				maps.DeleteFunc(all, func(key string, _ any) bool {
					return slices.Contains(withheld, key) || !slices.ContainsFunc(ownNames, func(own string) bool { return strings.HasPrefix(key, own) })
				})
			}
		}
	}
	return kept
}

func keep(value any, f Fields, show func(string) string) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, below := range value {
			if deeper, is := f[name]; is || f == nil {
				kept[name] = keep(below, deeper, show)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i := range value {
			kept[i] = keep(value[i], f, show)
		}
		return kept
	case string:
		if f != nil {
			return "" // a value where fields are expected
		}
		return show(value)
	}
	return value
}

// Sensitive returns the values of an object that no text of the archive may quote: those of its config, and the data of Secrets
// among its objects.
func Sensitive(object map[string]any) (found []string) {
	var leaves func(value any)
	leaves = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, below := range value {
				leaves(below)
			}
		case []any:
			for _, below := range value {
				leaves(below)
			}
		case string:
			found = append(found, value)
		}
	}
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if value["kind"] == "Secret" {
				leaves(value["data"])
				leaves(value["stringData"])
			}
			leaves(value["config"])
			for _, below := range value {
				walk(below)
			}
		case []any:
			for _, below := range value {
				walk(below)
			}
		}
	}
	// Revisions have the config of their time, which is that of the Package no more.
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if text, ok := annotations[corev1alpha1.PackageConfigAnnotation].(string); ok {
		var config any
		if json.Unmarshal([]byte(text), &config) == nil {
			leaves(config)
		}
	}
	walk(object["spec"])
	walk(object["objects"]) // of a slice
	return found
}
