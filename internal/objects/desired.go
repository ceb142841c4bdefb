package objects

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// Desired is one object of a revision as its set or slice holds it.
type Desired struct {
	Key Key
	// Version of the API that the template is written in.
	Version string
	// Raw is the template as JSON; it is shared with the set and never changed.
	Raw []byte
	// Content is the digest of the template without the labels and annotations
	// that the engine itself puts on: equal content needs no write.
	Content Digest
	// Collision is what to do where the object exists and the owner does not control it.
	Collision CollisionProtection
	// NeverAdopted means that Collision does not apply: only what the owner controls is written.
	NeverAdopted bool
	// Mappings are the conditions of the object that its owners report.
	Mappings []ConditionMapping
	// Keep means that the object is released instead of deleted.
	Keep bool
	// Left means the same of an object that a revision has which a rollback left.
	Left bool
	// Reserved means that a package may not have the object, such as an ancestor of the
	// owner: a teardown does not wait for it, as it waits for the teardown.
	Reserved bool
	// Recreate means that the object is deleted and created again where an immutable
	// field differs. Keep comes first.
	Recreate bool
	// Ignored are the fields that others own.
	Ignored IgnoredFields
	// Delegate is set for the ObjectSetPhase of a phase with a class.
	Delegate *Delegate
}

// CollisionProtection is what to do where an object exists and its owner does not control it.
type CollisionProtection string

// The modes of CollisionProtection.
const (
	// CollisionProtectionPrevent adopts what owners of the same lineage control, and nothing else.
	CollisionProtectionPrevent CollisionProtection = "Prevent"
	// CollisionProtectionIfNoController adopts also what nothing controls.
	CollisionProtectionIfNoController CollisionProtection = "IfNoController"
	// CollisionProtectionNone adopts anything.
	CollisionProtectionNone CollisionProtection = "None"
)

// ConditionMapping is a condition of an object that its owners report under another type.
type ConditionMapping struct{ SourceType, DestinationType string }

// GroupVersionKind returns the kind in the version of the template.
func (d *Desired) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Key.Group, Version: d.Version, Kind: d.Key.Kind}
}

// ManagedMetadata are labels, revision and owner that a revision puts on its objects.
type ManagedMetadata struct {
	// Labels are the inherited labels; the one of managed objects is added to them.
	Labels map[string]string
	// Revision is the number written into the revision annotation.
	Revision int64
	// Owner becomes the controller of the object.
	Owner Owner
	// Unnumbered means that the owner has no revisions: its objects carry no revision annotation.
	Unnumbered bool
	// Adopted means that the object was there before its owner adopted it.
	Adopted bool
}

// Object returns the complete object to apply: the template with its namespace,
// the metadata's labels, revision and controller, and a Secret's
// stringData turned into data. An ObjectSetPhase has the metadata of its set.
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
		encodeStringData(obj)
	}
	return obj, nil
}

// encodeStringData moves stringData, which the API server never returns, into
// data, where drift can be seen.
func encodeStringData(secret map[string]any) {
	plain, ok := secret["stringData"].(map[string]any)
	if !ok {
		return
	}
	data := entries(secret, "data")
	for k, v := range plain {
		if s, ok := v.(string); ok {
			data[k] = base64.StdEncoding.EncodeToString([]byte(s))
		}
	}
	delete(secret, "stringData")
}

// entries returns the map at field, made where it is absent.
func entries(parent map[string]any, field string) map[string]any {
	m, ok := parent[field].(map[string]any)
	if !ok {
		m = map[string]any{}
		parent[field] = m
	}
	return m
}
