package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/drift"
)

// Guard adds the guards of a server-side apply to the content that is applied over the live object,
// nil if there is none. A former controller stays an owner without control.
func Guard(obj map[string]any, live *objects.Observed, owner objects.Owner) {
	meta := obj["metadata"].(map[string]any)
	if live == nil {
		meta["resourceVersion"] = apply.AbsentVersion
		return
	}

	meta["resourceVersion"], meta["uid"] = live.ResourceVersion, string(live.UID)
	if owner.Remote() {
		owner.Put(meta, live.Owners...)
	}

	if former := live.Controller(); former != nil && !former.Remote && former.UID != owner.UID {
		refs, _ := meta["ownerReferences"].([]any)
		meta["ownerReferences"] = append(refs, map[string]any{
			"apiVersion": former.APIVersion, "kind": former.Kind, "name": former.Name,
			"uid": string(former.UID), "controller": false,
		})
	}
}

// content is the template with the guards of an apply over the live object.
func (s *step) content(ctx context.Context) (map[string]any, error) {
	obj, err := s.Desired.Object(s.Metadata)
	if err != nil {
		return nil, err
	}
	if obj, err = s.keepIgnored(ctx, obj); err != nil {
		return nil, err
	}

	Guard(obj, s.Live, s.Desired.Owner(s.Metadata.Owner))
	return obj, nil
}

// keepIgnored returns an object with the ignored fields as they are on the live one. It reads the
// live object for that, and the guard of the apply is on the same version.
func (s *step) keepIgnored(ctx context.Context, obj map[string]any) (map[string]any, error) {
	if len(s.Desired.Ignored) == 0 || s.Live == nil {
		return obj, nil
	}

	live, err := s.judged(ctx)
	if err != nil {
		return nil, err
	}
	others := drift.OwnedByOthers(s.run.Tracker.Names, obj, live, false)
	kept := s.Desired.Ignored.Keep(obj, live.Object, others)
	kept["metadata"] = maps.Clone(kept["metadata"].(map[string]any)) // the guard is put there
	return kept, nil
}

// judged reads the live object in the version that was judged. A later version can have another
// controller.
func (s *step) judged(ctx context.Context) (*unstructured.Unstructured, error) {
	if s.live != nil && s.live.GetResourceVersion() == s.Live.ResourceVersion {
		return s.live, nil
	}

	live, err := s.run.Cluster.Get(ctx, s.mapping, s.Key.Namespace, s.Key.Name)
	if err == nil && live.GetResourceVersion() != s.Live.ResourceVersion {
		err = apierrors.NewConflict(s.mapping.Resource.GroupResource(), s.Key.Name, errors.New("it has changed since it was judged"))
	}
	if err == nil {
		s.live = live
	}

	return live, err
}

// send applies an object that has its guards; it completes the request.
func (s *step) send(ctx context.Context, obj map[string]any, r apply.ApplyRequest) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	writes, err := s.writes(ctx)
	if err != nil {
		return nil, err
	}

	r.Mapping, r.Namespace, r.Name, r.Body = s.mapping, s.Key.Namespace, s.Key.Name, body
	return writes.Apply(ctx, r)
}

func (s *step) create(ctx context.Context, name string, obj map[string]any, dryRun bool) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	writes, err := s.writes(ctx)
	if err != nil {
		return nil, err
	}
	return writes.Create(ctx, s.mapping, s.Key.Namespace, name, body, dryRun)
}

func (s *step) patch(ctx context.Context, patch []byte, dryRun bool) (*unstructured.Unstructured, error) {
	writes, err := s.writes(ctx)
	if err != nil {
		return nil, err
	}
	return writes.Patch(ctx, s.mapping, s.Key.Namespace, s.Key.Name, patch, dryRun)
}
