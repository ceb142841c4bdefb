package engine

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
)

// Rollout is the memory of one owner between reconciles. It is not safe for
// concurrent use.
type Rollout struct {
	Owner objects.Owner
	// Account is the template's account, which removes objects that no revision contains.
	Account objects.Account
	// RolesCommand prints the roles that an account needs; empty if there is no such command.
	RolesCommand string
	// Adopt returns the command that makes another owner the user's own if it was installed as a
	// dependency; otherwise it is empty.
	Adopt func(context.Context, objects.OwnerKey) string
	// Claims are the claims to objects in the cluster; nil if the cluster is unknown.
	Claims *claims.Table

	// Controllers are related to the owner. For a deployment, Own are its sets and their phases.
	Controllers phases.Controllers
	// Previous are owners that hand their objects over to this one.
	Previous []types.UID

	// applied is the memory of this process about its writes, and plan is the last plan.
	applied phases.AppliedObjects
	plan    phases.Plan
	// single means that the owner has one object, from Single, and possibly a Removal. It is
	// created by an apply, never by a POST, so that managedFields show which fields of a former
	// content remain.
	single bool
	// namespaces are the UIDs of namespaces of Jobs that no revision contains; empty for namespaces
	// that do not exist.
	namespaces map[string]types.UID

	revisions        map[types.UID]*Revision
	trackedMarks     []mark // of what the tracker and the watches follow
	unwatchedRecords map[objects.Key]*objects.Observed
	// fieldGenerations has the generations from which on records have the fields that all probes
	// read, and lists the lists that make such records of existing objects.
	fieldGenerations map[schema.GroupKind]uint32
	lists            map[schema.GroupKind]int64
	// tracks reports whether the tracker has the template of an object of the owner: records of
	// others have no fields.
	tracks func(objects.OwnerKey, objects.Key) bool
	// roomDue is the time of the next read of objects whose records had no room.
	roomDue time.Time
	// replacements were prepared by dry runs for the writes that follow them.
	replacements map[objects.Key]*replacement
	// notes are about objects of the current revision; noted means that the store has them.
	notes map[objects.Key]string
	noted bool
	// spared are the objects that were released instead of deleted, and why.
	spared map[objects.Key]string
	// accounts are the accounts that were looked up.
	accounts map[objects.Account]lookedUp
	// budget is the budget of the present reconcile.
	budget probeBudget
}

// lookedUp is whether an account existed.
type lookedUp struct {
	exists bool
	at     time.Time
}

// mark decides about the templates of a revision's objects: it identifies the revision and its
// progress.
type mark struct {
	uid                                      types.UID
	opened, unscoped                         int
	claimed, succeeded, removing, incomplete bool
}

// New returns an empty memory for an owner.
func New(owner objects.Owner) *Rollout {
	return &Rollout{
		Owner:            owner,
		applied:          phases.AppliedObjects{},
		revisions:        map[types.UID]*Revision{},
		unwatchedRecords: map[objects.Key]*objects.Observed{},
		lists:            map[schema.GroupKind]int64{},
		namespaces:       map[string]types.UID{},

		replacements: map[objects.Key]*replacement{},
		notes:        map[objects.Key]string{},
		accounts:     map[objects.Account]lookedUp{},
		spared:       map[objects.Key]string{},
	}
}

// NewSingle returns an empty memory for an owner of one object.
func NewSingle(owner objects.Owner) *Rollout {
	r := New(owner)
	r.single = true
	return r
}

// Start starts a reconcile with a limited time for probes: costly probes block neither other owners
// nor the deletion of their own. end drops the plan of the reconcile.
func (r *Rollout) Start(now func() time.Time, probes time.Duration) (end func()) {
	r.plan, r.budget = phases.Plan{}, probeBudget{now: now, left: probes}
	return func() { r.plan = phases.Plan{} }
}

// ProbeBudgetSpent reports whether the time for probes in this pass is up. The next pass continues.
func (r *Rollout) ProbeBudgetSpent() bool { return r.budget.over() }

// Plan returns the last plan of the reconcile, for reports.
func (r *Rollout) Plan() *phases.Plan { return &r.plan }

// Spared returns why an object was released instead of deleted; empty for others.
func (r *Rollout) Spared(key objects.Key) string { return r.spared[key] }

// Report returns the state of a revision by the last plan; nil if it is unknown.
func (r *Rollout) Report(uid types.UID) *phases.Report {
	for i, rev := range r.Revisions() {
		if rev.UID == uid && i < len(r.plan.Reports) {
			return &r.plan.Reports[i]
		}
	}
	return nil
}

// Loaded returns the loaded revision of a set, or nil.
func (r *Rollout) Loaded(uid types.UID) *Revision { return r.revisions[uid] }

// Put adds a loaded revision.
func (r *Rollout) Put(rev *Revision) {
	r.revisions[rev.UID], r.trackedMarks = rev, nil
	rev.exposes = r.exposes
}

// Revisions returns the loaded revisions in ascending order.
func (r *Rollout) Revisions() []*Revision {
	return slices.SortedFunc(maps.Values(r.revisions), func(a, b *Revision) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
}

// Keys returns the objects of all loaded revisions that have claimed theirs, or might have written
// some. Others can take the objects that archived revisions retain.
func (r *Rollout) Keys() map[objects.Key]struct{} {
	keys := map[objects.Key]struct{}{}
	for _, rev := range r.revisions {
		claimed := rev.Claimed() || rev.ClaimedAtCreation && !rev.ClaimLost()
		if rev.History || !claimed && rev.Opened() == 0 {
			continue
		}
		for _, k := range rev.Keys() {
			keys[k] = struct{}{}
		}
	}

	return keys
}

// Holds reports whether the owner holds the claims to all objects of a revision.
func (r *Rollout) Holds(rev *Revision) bool {
	return r.Claims != nil && !slices.ContainsFunc(rev.Keys(), func(key objects.Key) bool {
		holder, _ := r.Claims.Holder(key)
		return holder.UID != r.Owner.UID
	})
}

// anyRevision reports whether a condition holds for any loaded revision.
func (r *Rollout) anyRevision(is func(*Revision) bool) bool {
	for _, rev := range r.revisions {
		if is(rev) {
			return true
		}
	}
	return false
}

// Contains reports whether any loaded revision contains the object.
func (r *Rollout) Contains(key objects.Key) bool {
	return r.anyRevision(func(rev *Revision) bool { return rev.Contains(key) })
}

// Gone reports whether the object was confirmed to be absent.
func (r *Rollout) Gone(key objects.Key) bool {
	rec := r.applied[key]
	return rec != nil && rec.Gone
}

// Wrote reports whether this process knows that the object with a UID has a content.
func (r *Rollout) Wrote(key objects.Key, uid types.UID, content objects.Digest) bool {
	rec := r.applied[key]
	return rec != nil && rec.UID == uid && rec.Content == content
}

// predecessors returns the UIDs of owners that hand their objects over to this one, including its
// earlier revisions and its own ObjectSetPhases.
func (r *Rollout) predecessors() []types.UID {
	return append(slices.Clone(r.Previous), r.Controllers.Delegated.Union(r.Controllers.Predecessors).UnsortedList()...)
}

// isOurs reports whether a reference names the owner or one of its sets.
func (r *Rollout) isOurs(ref objects.Reference) bool {
	return ref.UID == r.Owner.UID || r.Controllers.Own.Has(ref.UID) || r.Owner.SameName(&ref)
}

// sensitive reports whether a revision of the owner has sensitive values. An error about one object
// can quote the live object, which an older revision wrote.
func (r *Rollout) sensitive() bool {
	return r.anyRevision(func(rev *Revision) bool { return rev.Sensitive })
}

// exposes reports whether a revision of the owner annotates an object as holding
// sensitive values outside of Secrets.
func (r *Rollout) exposes(key objects.Key) bool {
	annotation := r.Owner.Names.ExposeSecretValuesAnnotation
	return r.anyRevision(func(rev *Revision) bool {
		d, _ := rev.Find(key)
		return d != nil && annotation != "" && bytes.Contains(d.Raw, []byte(annotation))
	})
}

// Noted returns the note about an object, or an empty text.
func (r *Rollout) Noted(key objects.Key) string { return r.notes[key] }

// clearFailures ends the backoff of writes after a change of another object: after the creation of
// a namespace for the objects in it, and after the removal of a policy or webhook for all objects.
func (r *Rollout) clearFailures(because objects.Key) {
	for key, rec := range r.applied {
		if because.Admission() || key.Namespace == because.Name {
			rec.Failure = nil
		}
	}
}

// Retry ends the backoff of failed writes and of conflicts with other writers, and reads accounts
// and unwatched objects again.
func (r *Rollout) Retry() {
	clear(r.accounts)
	for _, rev := range r.revisions {
		rev.recheck, rev.looks = time.Time{}, 0
	}
	for _, rec := range r.applied {
		rec.Failure, rec.Contention = nil, nil
		if !rec.ReadAt.IsZero() {
			rec.ReadAt = time.Unix(0, 0)
		}
	}
}
