package dryrun

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/drift"
)

// predict returns the object after a write: the response to its dry run, or else the
// template merged into the live object. A write that is not itself a dry run takes effect.
func (c *simulatedCluster) predict(
	ctx context.Context, m *meta.RESTMapping, namespace, name string, body []byte, write bool,
) (*unstructured.Unstructured, error) {
	key := keyOf(m, namespace, name)
	o := c.object(key)
	template, err := templateOf(body)
	if err != nil {
		return nil, err
	}
	why, err := c.definitions.validate(ctx, m.GroupVersionKind, template)
	if err != nil {
		return nil, c.refuse(ctx, key, o, err)
	}
	c.mu.Lock()
	why = cmp.Or(why, c.blind(key, o))
	c.mu.Unlock()
	var after *unstructured.Unstructured
	if why == "" {
		if after, err = c.dryRun(ctx, m, key, o, body, write); err != nil {
			if why = c.unverifiable(err); why == "" {
				return nil, c.refuse(ctx, key, o, err)
			}
		}
	}
	if why != "" {
		after = c.guess(o, template, why)
	}
	if write {
		c.write(key, o, after)
	}
	return after.DeepCopy(), nil
}

// templateOf decodes a body, without its preconditions.
func templateOf(body []byte) (map[string]any, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	u.SetResourceVersion("")
	u.SetUID("")
	return u.Object, nil
}

// blind returns why no dry run is possible; empty if one is. It requires mu.
func (c *simulatedCluster) blind(key objects.Key, o *object) string {
	switch {
	case o.now == nil && key.Namespace != "" && c.bringsNamespace(key.Namespace):
		return "its namespace comes with the package"
	case o.now != nil && o.live == nil:
		return "it is made by the package itself"
	case o.now == nil && o.live != nil:
		return cmp.Or(o.unverified, "it is deleted first")
	}
	return ""
}

// unverifiable returns why an error of a dry run is not conclusive; empty if it is.
func (c *simulatedCluster) unverifiable(err error) string {
	return cmp.Or(unverifiable(err), c.deniedByStale(err))
}

func (c *simulatedCluster) dryRun(
	ctx context.Context, m *meta.RESTMapping, key objects.Key, o *object, body []byte, write bool,
) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	dry, exists, migrated := o.dry[string(body)], o.now != nil, o.migrated
	c.mu.Unlock()
	if dry == nil {
		request := apply.ApplyRequest{Mapping: m, Namespace: key.Namespace, Name: key.Name, Body: body, Force: true, DryRun: true}
		var err error
		if !exists {
			if request.Body, err = creating(body); err != nil {
				return nil, err
			}
			request.FieldValidation = "Strict" // as that of the POST that creates it
		}
		if dry, err = c.Writer.Apply(ctx, request); err != nil {
			return nil, err
		}
		c.mu.Lock()
		if o.dry == nil {
			o.dry = map[string]*unstructured.Unstructured{}
		}
		o.dry[string(body)] = dry
		c.mu.Unlock()
	}
	if !write || !exists {
		return dry, nil
	}
	return c.withoutLeaving(ctx, m, key, dry, migrated)
}

// creating adds the precondition that the object is absent.
func creating(body []byte) ([]byte, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	u.SetResourceVersion(apply.AbsentVersion)
	return json.Marshal(u.Object)
}

// withoutLeaving removes fields that leave an object with migrated managedFields.
func (c *simulatedCluster) withoutLeaving(
	ctx context.Context, m *meta.RESTMapping, key objects.Key, dry *unstructured.Unstructured, migrated []metav1.ManagedFieldsEntry,
) (*unstructured.Unstructured, error) {
	after, removed, err := drift.Leaving(dry, migrated)
	if err != nil || !removed {
		return dry, err
	}
	// The API server defaults what was removed.
	body := after.DeepCopy()
	body.SetManagedFields(nil)
	raw, err := json.Marshal(body.Object)
	if err != nil {
		return nil, err
	}
	filled, err := c.Writer.DryUpdate(ctx, m, key.Namespace, key.Name, raw)
	if unverifiable(err) != "" {
		return after, nil
	}
	return filled, err
}

// guess replaces a dry run that is not possible.
func (c *simulatedCluster) guess(o *object, template map[string]any, why string) *unstructured.Unstructured {
	c.mu.Lock()
	o.unverified = why
	now, live := o.now, o.live
	c.mu.Unlock()
	after := &unstructured.Unstructured{Object: map[string]any{}}
	switch {
	case now != nil:
		after = now.DeepCopy()
	case live != nil: // recreated: the defaults will be those that it has
		after = live.DeepCopy()
		after.SetManagedFields(nil)
		after.SetDeletionTimestamp(nil)
	}
	overlay(after.Object, template)
	if now == nil {
		after.SetUID(uuid.NewUUID())
	}
	return after
}

// overlay merges maps by key, and elements of lists by name if they have one.
func overlay(onto, from map[string]any) {
	for key, v := range from {
		switch v := v.(type) {
		case map[string]any:
			if below, both := onto[key].(map[string]any); both {
				overlay(below, v)
				continue
			}
		case []any:
			if below, both := onto[key].([]any); both {
				onto[key] = overlayList(below, v)
				continue
			}
		}
		onto[key] = v
	}
}

func overlayList(onto, from []any) []any {
	merged := make([]any, len(from))
	for i, element := range from {
		merged[i] = element
		fields, isMap := element.(map[string]any)
		at := slices.IndexFunc(onto, func(other any) bool {
			o, ok := other.(map[string]any)
			return ok && isMap && o["name"] != nil && o["name"] == fields["name"]
		})
		if at >= 0 {
			below := runtime.DeepCopyJSON(onto[at].(map[string]any))
			overlay(below, fields)
			merged[i] = below
		}
	}
	return merged
}
