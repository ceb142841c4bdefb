package dryrun

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/internal/rollout"
)

// foresee returns what a write makes of an object.
func (w *world) foresee(ctx context.Context, s phases.Step) (*unstructured.Unstructured, error) {
	o := w.object(s.Key)
	template, err := s.Desired.Object(s.Stamp)
	if err != nil {
		return nil, err
	}
	id := rollout.TemplateID(s.Desired, s.Labels, w.rollout.Owner)
	undefined, err := w.defined.judge(ctx, s.Key.GroupKind().WithVersion(s.Desired.Version), template)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	var known *unstructured.Unstructured
	if s.Action != phases.Verify {
		known = o.dry[id]
	}
	why, err := w.blind(s, o)
	why = cmp.Or(undefined, why)
	w.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case known != nil && undefined == "":
		return known, nil
	case why != "":
		return w.guess(o, template, why), nil
	}
	after, err := w.dryRun(ctx, s, o, template)
	if err != nil {
		why, is := unverifiable(err)
		if !is {
			why, is = w.deniedByStale(err)
		}
		if is {
			return w.guess(o, template, why), nil
		}
		return nil, err
	}
	if s.Action == phases.Verify {
		return after, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.dry == nil {
		o.dry = map[objects.Digest]*unstructured.Unstructured{}
	}
	o.dry[id] = after
	return after, nil
}

// blind says why no dry run of a step is possible; empty where one is. mu is held.
func (w *world) blind(s phases.Step, o *object) (string, error) {
	gk := s.Key.GroupKind()
	switch {
	case o.mapping == nil && w.defined.brings(gk): // definitions say the rest
	case o.mapping == nil:
		return "", &Refused{fmt.Sprintf("the API server does not serve %s in version %s: bring the object in a version that is served", gk, s.Desired.Version)}
	case s.Live == nil && s.Key.Namespace != "" && w.bringsNamespace(s.Key.Namespace):
		return "its namespace comes with the package", nil
	case s.Live != nil && o.live == nil:
		return "it is made by the package itself", nil
	case s.Live == nil && o.live != nil && (len(o.done) > 0 || o.live.GetDeletionTimestamp() != nil):
		return cmp.Or(o.unverified, "it is deleted first"), nil
	case s.Live != nil && s.Live.StaleFields:
		return "its managedFields name a version that is not served any more; the engine puts that right first", nil
	}
	return "", nil
}

// dryRun asks the API server. The guards are those of the object as it is.
func (w *world) dryRun(ctx context.Context, s phases.Step, o *object, template map[string]any) (*unstructured.Unstructured, error) {
	var live *objects.Observed
	if s.Live != nil {
		live = w.observe(s.Key, o.live)
	}
	rollout.Guard(template, live, s.Stamp.Owner)
	body, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	request := apply.ApplyRequest{
		Mapping: o.mapping, Namespace: s.Key.Namespace, Name: s.Key.Name, Body: body, Force: true, DryRun: true,
	}
	if live == nil {
		request.FieldValidation = "Strict" // as that of the POST that makes it
	}
	dry, err := w.Writer.Apply(ctx, request)
	if err != nil || live == nil || s.Action == phases.Correct || s.Action == phases.Verify {
		return dry, err
	}
	return w.withoutLeaving(ctx, s, o, dry)
}

// withoutLeaving takes off what the engine's own earlier writes put on the object
// and the template has no more, and at adoption what kubectl or Helm did.
func (w *world) withoutLeaving(ctx context.Context, s phases.Step, o *object, dry *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var from drift.Origin
	for _, rev := range w.rollout.Revisions() {
		d, _ := rev.Find(s.Key)
		if d == nil {
			continue
		}
		template, err := d.Object(rev.Stamp)
		if err != nil {
			return nil, err
		}
		from.Templates = append(from.Templates, template)
		if s.Foreign && d == s.Desired {
			from.Adopting = template
		}
	}
	after, removed, err := drift.Leaving(dry, from)
	if err != nil || !removed {
		return dry, err
	}
	// The API server fills in its defaults where a value is gone.
	body := after.DeepCopy()
	body.SetManagedFields(nil)
	raw, err := json.Marshal(body.Object)
	if err != nil {
		return nil, err
	}
	filled, err := w.Writer.DryUpdate(ctx, o.mapping, s.Key.Namespace, s.Key.Name, raw)
	if _, is := unverifiable(err); is {
		return after, nil
	}
	return filled, err
}

// guess lays the template over the live values, for want of a dry run.
func (w *world) guess(o *object, template map[string]any, why string) *unstructured.Unstructured {
	w.mu.Lock()
	o.unverified = why
	now, live := o.now, o.live
	w.mu.Unlock()
	switch {
	case now == nil && live == nil:
		after := &unstructured.Unstructured{Object: template}
		after.SetUID(uuid.NewUUID())
		return after
	case now == nil:
		// Made anew: the defaults will be those that it has.
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
