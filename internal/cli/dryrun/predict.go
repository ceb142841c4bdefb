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

// predict returns what a write makes of an object: the response to its dry run, or else the
// template over the live values. A write that is not itself a dry run takes effect.
func (c *simulatedCluster) predict(
	ctx context.Context, m *meta.RESTMapping, namespace, name string, body []byte, write bool,
) (*unstructured.Unstructured, error) {
	key := keyOf(m, namespace, name)
	o := c.object(key)
	template, err := templateOf(body)
	if err != nil {
		return nil, err
	}
	why, err := c.definitions.judge(ctx, m.GroupVersionKind, template)
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

// templateOf decodes what is sent, without its guards.
func templateOf(body []byte) (map[string]any, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	u.SetResourceVersion("")
	u.SetUID("")
	return u.Object, nil
}

// blind says why no dry run is possible; empty where one is. mu is held.
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

// unverifiable says why an error of a dry run is not conclusive; empty where it is.
func (c *simulatedCluster) unverifiable(err error) string {
	why, is := unverifiable(err)
	if !is {
		why, _ = c.deniedByStale(err)
	}
	return why
}

// dryRun asks the API server.
func (c *simulatedCluster) dryRun(
	ctx context.Context, m *meta.RESTMapping, key objects.Key, o *object, body []byte, write bool,
) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	dry, known, exists, migrated := o.dry[string(body)], false, o.now != nil, o.migrated
	known = dry != nil
	c.mu.Unlock()
	if !known {
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

// creating guards an apply that is to create.
func creating(body []byte) ([]byte, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	u.SetResourceVersion(apply.AbsentVersion)
	return json.Marshal(u.Object)
}

// withoutLeaving removes fields that leave the object because its managedFields were
// rewritten before.
func (c *simulatedCluster) withoutLeaving(
	ctx context.Context, m *meta.RESTMapping, key objects.Key, dry *unstructured.Unstructured, migrated []metav1.ManagedFieldsEntry,
) (*unstructured.Unstructured, error) {
	after, removed, err := drift.Leaving(dry, migrated)
	if err != nil || !removed {
		return dry, err
	}
	// The API server defaults what is gone.
	body := after.DeepCopy()
	body.SetManagedFields(nil)
	raw, err := json.Marshal(body.Object)
	if err != nil {
		return nil, err
	}
	filled, err := c.Writer.DryUpdate(ctx, m, key.Namespace, key.Name, raw)
	if _, is := unverifiable(err); is {
		return after, nil
	}
	return filled, err
}

// guess lays the template over the live values, for want of a dry run.
func (c *simulatedCluster) guess(o *object, template map[string]any, why string) *unstructured.Unstructured {
	c.mu.Lock()
	o.unverified = why
	now, live := o.now, o.live
	c.mu.Unlock()
	switch {
	case now == nil && live == nil:
		after := &unstructured.Unstructured{Object: template}
		after.SetUID(uuid.NewUUID())
		return after
	case now == nil:
		// Recreated: the defaults will be those that it has.
		after := live.DeepCopy()
		overlay(after.Object, template)
		after.SetUID(uuid.NewUUID())
		after.SetManagedFields(nil)
		after.SetDeletionTimestamp(nil)
		return after
	}
	after := now.DeepCopy()
	overlay(after.Object, template)
	return after
}

// overlay merges from into onto: maps key by key, elements of lists by their names
// where they have some, anything else as a whole.
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
