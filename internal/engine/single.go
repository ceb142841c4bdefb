package engine

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/drift"
	"lockstep.run/lockstep/internal/probes"
)

// Single returns the revision of an owner without revisions: one object without probes, which is
// never adopted. The caller has to claim it. written means that an earlier process wrote the
// object.
func Single(owner objects.Owner, d *objects.Desired, written bool) *Revision {
	r := unprobedRevision(owner, owner.UID, 1, []*objects.Desired{d})
	r.RestorePhase(0, written)
	r.Restore(phases.Recorded{Claimed: true, Started: 1, Succeeded: true})
	return r
}

// Removal returns a revision of such an owner with objects to remove. It comes before the revision
// of Single.
func Removal(owner objects.Owner, keys []objects.Key) *Revision {
	all := make([]*objects.Desired, len(keys))
	for i, key := range keys {
		all[i] = &objects.Desired{Key: key}
	}
	r := unprobedRevision(owner, RemovalOf(owner), 0, all)
	r.Restore(phases.Recorded{Claimed: true, Started: 1, Succeeded: true, Removing: true})
	return r
}

// RemovalOf returns the UID of the revision that Removal returns.
func RemovalOf(owner objects.Owner) types.UID { return owner.UID + "/removal" }

func unprobedRevision(owner objects.Owner, uid types.UID, number int64, all []*objects.Desired) *Revision {
	r := NewRevision()
	r.Identify(owner.Name, uid, "")
	r.Number = number
	r.Metadata = objects.ManagedMetadata{Owner: owner, Unnumbered: true}
	r.Labels = drift.Digest(map[string]any{})
	r.Probes = &probes.Set{}
	r.Phases = []phases.Phase{{Name: "object", Objects: all}}
	r.Enter(0)
	return r
}

// NewDesired returns the object of such an owner by its content, which is decoded JSON with a name.
func NewDesired(names *objects.Names, key objects.Key, version string, content map[string]any) (*objects.Desired, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}

	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	fields, _ := annotations[names.IgnoredFieldsAnnotation].(string)
	ignored, err := names.ParseIgnoredFields(fields)
	if err = cmp.Or(err, ignored.Check(content)); err != nil {
		return nil, fmt.Errorf("metadata.annotations[%s]: %w", names.IgnoredFieldsAnnotation, err)
	}

	return &objects.Desired{
		Key: key, Version: version, Raw: raw, Content: drift.ContentDigest(names, content), NeverAdopted: true,
		Ignored:  append(ignored, objects.LeftToControllers(key.GroupKind(), content)...),
		Keep:     annotations[names.DeletionPolicyAnnotation] == names.DeletionPolicyKeep,
		Recreate: annotations[names.OnImmutableAnnotation] == names.OnImmutableRecreate,
	}, nil
}
