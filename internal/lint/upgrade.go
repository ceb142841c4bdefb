package lint

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// upgradeRules compare with an older package (--from).
var upgradeRules = []Rule{
	{
		"immutable-field", Error,
		"A field has changed since the older package that the API server does not let change: the upgrade is stuck.",
		immutableField,
	},
	{
		"definition-version-removed", Error,
		"A version of a CustomResourceDefinition is gone or no longer served: its clients break, and the API server refuses it while objects are stored in that version.",
		versionRemoved,
	},
}

// immutable lists the fields of a kind that cannot change, or, where all but
// some cannot, what is below a field and may.
type immutable struct {
	fields []string
	// below and except: everything in the field below cannot change, except these.
	below  string
	except []string
}

var immutables = map[schema.GroupKind]immutable{
	deploymentKind: {fields: []string{"spec.selector"}},
	replicaSetKind: {fields: []string{"spec.selector"}},
	daemonSetKind:  {fields: []string{"spec.selector"}},
	statefulSetKind: {below: "spec", except: []string{
		"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
	}},
	jobKind:                {fields: []string{"spec.selector", "spec.template", "spec.completionMode", "spec.podFailurePolicy", "spec.backoffLimitPerIndex", "spec.managedBy"}},
	claimKind:              {below: "spec", except: []string{"resources", "volumeAttributesClassName"}},
	serviceKind:            {fields: []string{"spec.clusterIP"}},
	secretKind:             {fields: []string{"type"}},
	roleBindingKind:        {fields: []string{"roleRef"}},
	clusterRoleBindingKind: {fields: []string{"roleRef"}},
	crdKind:                {fields: []string{"spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"}},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:          {fields: []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:             {fields: []string{"spec.attachRequired", "spec.fsGroupPolicy", "spec.volumeLifecycleModes"}},
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: {fields: []string{"driverName", "parameters"}},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:      {fields: []string{"value", "preemptionPolicy"}},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:             {fields: []string{"handler"}},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:       {fields: []string{"spec.controller"}},
}

func immutableField(c *oneCase, r reporter) {
	for _, o := range c.objects {
		before := c.former[c.key(o)]
		if before == nil || o.annotated(corev1alpha1.OnImmutableAnnotation, corev1alpha1.OnImmutableRecreate) {
			continue
		}
		if fields := changedImmutable(before, o); len(fields) > 0 {
			r.at(o, fields[0], "Give the object another name, or annotate it with "+corev1alpha1.OnImmutableAnnotation+": "+corev1alpha1.OnImmutableRecreate+", which deletes it and creates it again.",
				"differs from the older package in %s, which cannot change", strings.Join(fields, ", "))
		}
	}
}

// changedImmutable returns the fields that have changed and cannot. A field that
// only one of both states is the API server's to default, and counts where the
// older one stated it.
func changedImmutable(before, after *object) []string {
	rule := immutables[after.kind]
	fields := slices.Clone(rule.fields)
	if rule.below != "" {
		both := map[string]bool{}
		for _, o := range []*object{before, after} {
			for key := range mapping(o.Object, rule.below) {
				both[key] = !slices.Contains(rule.except, key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(both)) {
			if both[key] {
				fields = append(fields, rule.below+"."+key)
			}
		}
	}
	if frozen, _ := at(before.Object, "immutable").(bool); frozen {
		fields = append(fields, "data", "stringData", "binaryData", "immutable")
	}
	return slices.DeleteFunc(fields, func(field string) bool {
		path := strings.Split(field, ".")
		old, now := at(before.Object, path...), at(after.Object, path...)
		return old == nil && rule.below == "" || reflect.DeepEqual(old, now)
	})
}

func versionRemoved(c *oneCase, r reporter) {
	for _, o := range c.of(crdKind) {
		before := c.former[c.key(o)]
		if before == nil {
			continue
		}
		served := map[string]bool{}
		for _, version := range versionsOf(o) {
			served[text(version, "name")], _ = version["served"].(bool)
		}
		for _, version := range versionsOf(before) {
			name := text(version, "name")
			if wasServed, _ := version["served"].(bool); !wasServed || served[name] {
				continue
			}
			what := "is not served any more"
			if _, there := served[name]; !there {
				what = "is gone"
			}
			r.at(o, "spec.versions", "Keep it served until every client and every stored object is of a later version.", "the version %s %s", fmt.Sprintf("%q", name), what)
		}
	}
}

func versionsOf(crd *object) []map[string]any { return mappings(crd.Object, "spec", "versions") }
