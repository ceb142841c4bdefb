package objects

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// Desired is one object of a revision, as the revision's set or slice holds it.
type Desired struct {
	Key Key
	// Version is the API version of the template.
	Version string
	// Raw is the template as JSON. It is shared with the set and never changed.
	Raw []byte
	// Content is the digest of the template, excluding the labels and annotations that the engine
	// adds. Equal content needs no write.
	Content Digest
	// Collision decides whether to adopt an object that exists and that the owner does not control.
	Collision CollisionProtection
	// NeverAdopted overrides Collision: the engine writes the object only if the owner controls it.
	NeverAdopted bool
	// Mappings are the conditions of the object that its owners report.
	Mappings []ConditionMapping
	// Keep means that the object is released instead of deleted.
	Keep bool
	// Left means the same as Keep, for an object of a revision that a rollback left.
	Left bool
	// Reserved means that a package must not have the object, for example because it is an ancestor
	// of the owner. A teardown does not wait for it, because it waits for the teardown.
	Reserved bool
	// Recreate means that the object is deleted and created again if an immutable field differs.
	// Keep takes precedence.
	Recreate bool
	// Ignored are the fields that others own.
	Ignored IgnoredFields
	// Delegate is set for the ObjectSetPhase of a phase with a class.
	Delegate *Delegate
}

// CollisionProtection decides whether to adopt an object that exists and that its owner does not
// control.
type CollisionProtection string

// The modes of CollisionProtection.
const (
	// CollisionProtectionPrevent adopts only objects that owners of the same lineage control.
	CollisionProtectionPrevent CollisionProtection = "Prevent"
	// CollisionProtectionIfNoController also adopts objects without a controller.
	CollisionProtectionIfNoController CollisionProtection = "IfNoController"
	// CollisionProtectionNone adopts any object.
	CollisionProtectionNone CollisionProtection = "None"
)

// ConditionMapping is a condition of an object that its owners report under another type.
type ConditionMapping struct{ SourceType, DestinationType string }

// GroupVersionKind returns the kind in the template's version.
func (d *Desired) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Key.Group, Version: d.Version, Kind: d.Key.Kind}
}

// ManagedMetadata is the metadata that a revision puts on its objects.
type ManagedMetadata struct {
	// Labels are the inherited labels. Object adds the label of managed objects.
	Labels map[string]string
	// Revision is the number written into the revision annotation.
	Revision int64
	// Owner becomes the controller of the object.
	Owner Owner
	// Unnumbered means that the owner has no revisions, so its objects carry no revision
	// annotation.
	Unnumbered bool
	// Adopted means that the object existed before its owner adopted it.
	Adopted bool
}

// Object returns the complete object to apply: the template with its namespace, the labels,
// revision and controller from the metadata, and stringData of a Secret converted to data. An
// ObjectSetPhase gets the metadata of its set.
func (d *Desired) Object(metadata ManagedMetadata) (map[string]any, error) {
	obj := map[string]any{}
	if err := json.Unmarshal(d.Raw, &obj); err != nil {
		return nil, fmt.Errorf("cannot read the template of %s: %w", d.Key, err)
	}

	meta, _ := obj["metadata"].(map[string]any)
	if meta == nil {
		return nil, fmt.Errorf("cannot read the template of %s: metadata is missing", d.Key)
	}

	delete(obj, "status")
	delete(meta, "creationTimestamp")
	if d.Key.Namespace != "" {
		meta["namespace"] = d.Key.Namespace
	} else {
		delete(meta, "namespace")
	}

	labels, names := entries(meta, "labels"), metadata.Owner.Names
	for k, v := range metadata.Labels {
		labels[k] = v
	}

	if d.Delegate == nil {
		labels[names.ManagedLabel] = names.ManagedValue
	}
	if d.Delegate == nil && !metadata.Unnumbered {
		entries(meta, "annotations")[names.RevisionAnnotation] = strconv.FormatInt(metadata.Revision, 10)
	}
	if metadata.Adopted && names.AdoptedAnnotation != "" {
		entries(meta, "annotations")[names.AdoptedAnnotation] = "true"
	}

	d.Owner(metadata.Owner).Put(meta)
	if d.Key.Group == "" && d.Key.Kind == "Secret" {
		normalizeSecret(obj)
	}

	return obj, nil
}

// normalizeSecret moves stringData into data. The API server never returns stringData, so drift
// would be invisible there. Values that are not texts become empty objects: the API server refuses
// them as well, and its message quotes the value.
func normalizeSecret(secret map[string]any) {
	if _, isMap := secret["data"].(map[string]any); !isMap && secret["data"] != nil {
		return // the API server refuses it
	}

	plain, isMap := secret["stringData"].(map[string]any)
	if isMap {
		data := entries(secret, "data")
		for k, v := range plain {
			switch v := v.(type) {
			case string:
				data[k] = base64.StdEncoding.EncodeToString([]byte(v))
			case nil:
				data[k] = ""
			default:
				data[k] = v
			}
		}
		delete(secret, "stringData")
	}

	data, _ := secret["data"].(map[string]any)
	for k, v := range data {
		if _, isText := v.(string); !isText && v != nil {
			data[k] = map[string]any{}
		}
	}
}

// entries returns the map at field, creating it if it is absent.
func entries(parent map[string]any, field string) map[string]any {
	m, ok := parent[field].(map[string]any)
	if !ok {
		m = map[string]any{}
		parent[field] = m
	}
	return m
}
