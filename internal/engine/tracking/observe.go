package tracking

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/drift"
)

// Observe returns the record of a live object, from a watch or the response to a write.
func (t *Tracker) Observe(key objects.Key, live *unstructured.Unstructured) *objects.Observed {
	obs := t.fromMetadata(live)
	fields := drift.ManagedFields(live)
	t.observeFields(key.GroupKind(), fields, obs)
	t.mu.RLock()
	tr, tracked := t.tracks.byKey[key]
	controller, known := t.owners.of(obs.Controller())
	t.mu.RUnlock()

	owned := tracked && known && tr.owner == controller
	obs.Unrecorded = owned && !obs.Wrote
	if tracked {
		metadata := tr.metadata
		if owned {
			metadata.Owner = KeptOwner(metadata.Owner, obs.Controller())
		}
		if template, err := tr.desired.Object(metadata); err == nil {
			shapes := t.listTypes.Learn(key.GroupKind(), fields)
			shown := tr.desired.Ignored.Without(template, live.Object)
			compared := tr.desired.Ignored.Without(template, template)
			if template["apiVersion"] != live.Object["apiVersion"] {
				obs.Projection = drift.Project(t.Names, drift.Converted(compared, live.Object), live.Object, shapes)
			} else {
				obs.Projection = drift.Project(t.Names, compared, shown, shapes)
				obs.ProjectedBy = tr.template
				obs.Matches = drift.Matches(t.Names, compared, shown, shapes)
			}
			obs.Exceeds = tr.metadata.Unnumbered && drift.Exceeds(t.Names, template, fields)
		}
	}

	if tracked {
		t.keep(key, live.Object, obs)
	} else {
		t.release(key) // any client can put our label on its objects
	}

	if owned && key.GroupKind() == objects.Job {
		t.recordFinished(key, live, obs, tr.desired.Content)
	}
	return obs
}

// KeptOwner returns the owner that an object keeps until its next write: the set that an
// earlier engine had control it, or else the owner itself.
func KeptOwner(owner objects.Owner, controller *objects.Reference) objects.Owner {
	if controller == nil || controller.Remote || owner.Remote() || controller.UID == owner.UID || owner.SameName(controller) {
		return owner
	}
	return objects.Owner{
		OwnerKey: objects.OwnerKey{Kind: controller.Kind, Namespace: owner.Namespace, Name: controller.Name}, UID: controller.UID,
		Names: owner.Names,
	}
}

func (t *Tracker) fromMetadata(live *unstructured.Unstructured) *objects.Observed {
	annotations := live.GetAnnotations()
	obs := &objects.Observed{
		UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Generation: live.GetGeneration(),
		Owners:      t.Names.References(live.GetOwnerReferences(), annotations),
		AdoptableBy: annotations[t.Names.AdoptableByAnnotation],
		Finalizers:  len(live.GetFinalizers()) > 0,
		Keep:        t.Names.Keeps(annotations),
		Recreate:    t.Names.Recreates(annotations),
		Adopted:     t.Names.Adopted(annotations),
	}

	obs.Revision, _ = strconv.ParseInt(annotations[t.Names.RevisionAnnotation], 10, 64)
	if live.GetDeletionTimestamp() != nil {
		obs.Terminating = true
		obs.CollectedSince = objects.CollectedSince(live.GroupVersionKind().GroupKind(), live.GetDeletionTimestamp(), live.GetFinalizers())
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		obs.Held = objects.HeldBy(live.GetFinalizers(), conditions)
	}

	return obs
}

func (t *Tracker) observeFields(gk schema.GroupKind, fields []metav1.ManagedFieldsEntry, obs *objects.Observed) {
	obs.Writer = t.lastWriter(fields)
	obs.UpdateFields = drift.HasUpdates(t.Names, fields)
	obs.OwnsReplicas = drift.OwnsReplicas(t.Names, fields)
	obs.InstallerFields = drift.HasInstaller(t.Names, fields)
	obs.Wrote = obs.UpdateFields || drift.HasApply(t.Names, fields)
	obs.StaleFields = drift.IsStale(fields, t.ServedVersions(gk))
}

// ServedVersions returns which versions of a kind are served, as package drift takes it.
func (t *Tracker) ServedVersions(gk schema.GroupKind) func(apiVersion string) bool {
	if t.Served == nil {
		return nil
	}
	return func(apiVersion string) bool { return t.Served(gk, apiVersion) }
}

// lastWriter returns the field manager of the latest change of the main resource, or "" if it is
// ours.
func (t *Tracker) lastWriter(fields []metav1.ManagedFieldsEntry) string {
	var last *metav1.ManagedFieldsEntry
	for i := range fields {
		f := &fields[i]
		if f.Subresource == "" && f.Time != nil && (last == nil || last.Time.Time.Before(f.Time.Time) || f.Manager != t.Names.FieldManager && f.Time.Equal(last.Time)) {
			last = f
		}
	}

	if last == nil || last.Manager == t.Names.FieldManager {
		return ""
	}
	return last.Manager
}
