package lint

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/author/fields"
)

// immutable lists the fields of a kind that cannot change.
type immutable struct {
	fields []string
	// below is a field in which nothing can change except these.
	below  string
	except []string
	// defaults are those of the API server.
	defaults map[string]any
	// chosen are set by the cluster if they are missing.
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
		changed := changedImmutable(before, o)
		// As in the engine, the annotations of either version count, and Keep wins.
		either := func(key, value string) bool { return before.annotated(key, value) || o.annotated(key, value) }
		remedy := rename + ", or annotate it with " + corev1alpha1.OnImmutableAnnotation + ": " + corev1alpha1.OnImmutableRecreate + ", which deletes it and creates it again."
		if either(corev1alpha1.DeletionPolicyAnnotation, corev1alpha1.DeletionPolicyKeep) {
			remedy = rename + ": it says " + corev1alpha1.DeletionPolicyAnnotation + ": " + corev1alpha1.DeletionPolicyKeep + ", so it is not deleted to be created again."
		} else if either(corev1alpha1.OnImmutableAnnotation, corev1alpha1.OnImmutableRecreate) {
			continue
		}
		if len(changed) > 0 {
			r.at(o, changed[0], remedy, "differs from the older package in %s, which cannot change", strings.Join(changed, ", "))
		}
	}
}

// changedImmutable returns the fields that have changed and cannot.
func changedImmutable(before, after *object) []string {
	rule := immutables[after.kind]
	names := slices.Clone(rule.fields)
	if rule.below != "" {
		all := map[string]any{}
		maps.Copy(all, fields.Map(before.Object, rule.below))
		maps.Copy(all, fields.Map(after.Object, rule.below))
		for _, key := range fields.Keys(all) {
			if !slices.Contains(rule.except, key) {
				names = append(names, rule.below+"."+key)
			}
		}
	}
	if fields.Bool(before.Object, "immutable") {
		names = append(names, "data", "stringData", "binaryData", "immutable")
	}
	return slices.DeleteFunc(names, func(name string) bool {
		old, now := rule.value(before, name), rule.value(after, name)
		// A cluster never chooses to be without an address.
		unknown := old == nil && slices.Contains(rule.chosen, name) && now != corev1.ClusterIPNone
		// The completions of an indexed Job may change with its parallelism.
		elastic := name == "spec.completions" && fields.Text(after.Object, "spec", "completionMode") == "Indexed" && reflect.DeepEqual(now, fields.Get(after.Object, "spec", "parallelism"))
		return unknown || elastic || reflect.DeepEqual(old, now)
	})
}

// value returns a field with its default.
func (i immutable) value(o *object, field string) any {
	if value := fields.Get(o.Object, strings.Split(field, ".")...); value != nil {
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
		for _, version := range fields.Maps(o.Object, "spec", "versions") {
			served[fields.Text(version, "name")] = fields.Bool(version, "served")
		}
		for _, version := range fields.Maps(before.Object, "spec", "versions") {
			name := fields.Text(version, "name")
			if !fields.Bool(version, "served") || served[name] {
				continue
			}
			problem := "is not served any more"
			if _, exists := served[name]; !exists {
				problem = "is gone"
			}
			r.at(o, "spec.versions", "Keep it served until every client and every stored object is of a later version.", "the version %q %s", name, problem)
		}
	}
}
