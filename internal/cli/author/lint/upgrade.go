package lint

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	// defaults are those of the API server.
	defaults map[string]any
	// chosen are fields that the cluster fills in: a value stated later may be the same.
	chosen []string
}

var roleRef = immutable{
	fields:   []string{"roleRef.apiGroup", "roleRef.kind", "roleRef.name"},
	defaults: map[string]any{"roleRef.apiGroup": "rbac.authorization.k8s.io"},
}

// immutables are the fields of the kinds of Kubernetes; e2e/plan compares them with
// what an API server refuses.
var immutables = map[schema.GroupKind]immutable{
	deploymentKind: {fields: []string{"spec.selector"}},
	replicaSetKind: {fields: []string{"spec.selector"}},
	daemonSetKind:  {fields: []string{"spec.selector"}},
	statefulSetKind: {below: "spec", except: []string{
		"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
	}, defaults: map[string]any{"spec.podManagementPolicy": "OrderedReady"}},
	jobKind: {
		fields: []string{
			"spec.selector", "spec.template", "spec.completions", "spec.completionMode", "spec.podFailurePolicy", "spec.successPolicy",
			"spec.backoffLimitPerIndex", "spec.managedBy",
		},
		defaults: map[string]any{"spec.completionMode": "NonIndexed", "spec.completions": int64(1)},
		chosen:   []string{"spec.selector"},
	},
	claimKind: {
		below: "spec", except: []string{"resources", "volumeAttributesClassName"},
		defaults: map[string]any{"spec.volumeMode": "Filesystem"}, chosen: []string{"spec.storageClassName", "spec.volumeName"},
	},
	serviceKind:            {fields: []string{"spec.clusterIP"}, chosen: []string{"spec.clusterIP"}},
	secretKind:             {fields: []string{"type"}, defaults: map[string]any{"type": "Opaque"}},
	roleBindingKind:        roleRef,
	clusterRoleBindingKind: roleRef,
	crdKind:                {fields: []string{"spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"}},
	{Group: "storage.k8s.io", Kind: "StorageClass"}: {
		fields:   []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
		defaults: map[string]any{"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
	},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}: {
		fields:   []string{"spec.attachRequired", "spec.volumeLifecycleModes"},
		defaults: map[string]any{"spec.attachRequired": true, "spec.volumeLifecycleModes": []any{"Persistent"}},
	},
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: {fields: []string{"driverName", "parameters"}},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: {
		fields:   []string{"value", "preemptionPolicy"},
		defaults: map[string]any{"value": int64(0), "preemptionPolicy": "PreemptLowerPriority"},
	},
	{Kind: "ResourceQuota"}:                            {fields: []string{"spec.scopes"}},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: {fields: []string{"addressType"}},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:       {fields: []string{"handler"}},
	{Group: "networking.k8s.io", Kind: "IngressClass"}: {fields: []string{"spec.controller"}},
}

func immutableField(c *oneCase, r reporter) {
	const rename = "Give the object another name"
	for _, o := range c.objects {
		before := c.former[c.key(o)]
		if before == nil {
			continue
		}
		// As in the engine, the annotations of either version count, and Keep wins.
		kept := slices.ContainsFunc([]*object{before, o}, func(o *object) bool {
			return o.annotated(corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep)
		})
		recreate := slices.ContainsFunc([]*object{before, o}, func(o *object) bool {
			return o.annotated(corev1alpha1.OnImmutableAnnotation, corev1alpha1.OnImmutableRecreate)
		})
		fields := changedImmutable(before, o)
		remedy := rename + ", or annotate it with " + corev1alpha1.OnImmutableAnnotation + ": " + corev1alpha1.OnImmutableRecreate + ", which deletes it and creates it again."
		if kept {
			remedy = rename + ": it says " + corev1alpha1.DeletionPolicyAnnotation + ": " + corev1alpha1.DeletionPolicyKeep + ", so it is not deleted to be created again."
		}
		if len(fields) > 0 && (kept || !recreate) {
			r.at(o, fields[0], remedy, "differs from the older package in %s, which cannot change", strings.Join(fields, ", "))
		}
	}
}

// changedImmutable returns the fields that have changed and cannot.
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
		old, now := rule.value(before, field), rule.value(after, field)
		// A cluster never chooses to be without an address.
		unknown := old == nil && slices.Contains(rule.chosen, field) && now != corev1.ClusterIPNone
		// Where a Job is indexed, its completions may change with its parallelism.
		elastic := field == "spec.completions" && text(after.Object, "spec", "completionMode") == "Indexed" && reflect.DeepEqual(now, at(after.Object, "spec", "parallelism"))
		return unknown || elastic || reflect.DeepEqual(old, now)
	})
}

// value returns a field with its default.
func (i immutable) value(o *object, field string) any {
	if value := at(o.Object, strings.Split(field, ".")...); value != nil {
		return value
	}
	return i.defaults[field]
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
