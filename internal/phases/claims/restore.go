package claims

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
)

// Record is the durable part of the claim of a revision that might have written objects.
type Record struct {
	Owner objects.Owner
	// Keys returns the objects of the revision.
	Keys func() []objects.Key
	// From are the owners that hand objects over to this one.
	From []types.UID
	// Lost means that the record states that the claim was lost. Unproven means that the claim is
	// all that the record has: no phase has started. This happens if a deposed leader created the
	// set late, or if the engine did not write the status.
	Lost, Unproven bool
	// Created and UID belong to the set.
	Created time.Time
	UID     types.UID
}

// Controllers has the owner that controls each object, or the zero Owner if that owner does not
// have the object on record.
type Controllers map[objects.Key]objects.Owner

// Contested returns the keys of the claims that the records alone do not decide: claims on record
// as lost, and claims that share an object with another owner without overruling it.
func Contested(records []Record) []objects.Key {
	first := map[bool]map[claim]int{false: {}, true: {}} // records by their objects, of namespaces and of the cluster
	contested := make([]bool, len(records))
	hashed := make([][]claim, len(records))
	for i := range records {
		r := &records[i]
		contested[i] = r.Lost
		of := first[r.Owner.Namespace == ""]
		for _, key := range r.Keys() {
			c := claimOf(key)
			hashed[i] = append(hashed[i], c)
			if other, found := of[c]; !found {
				of[c] = i
			} else if records[other].Owner.UID != r.Owner.UID {
				contested[i], contested[other] = true, true
			}
		}
	}

	var keys []objects.Key
	for i := range records {
		r := &records[i]
		if contested[i] || r.Owner.Namespace != "" && slices.ContainsFunc(hashed[i], func(c claim) bool { _, found := first[true][c]; return found }) {
			keys = append(keys, r.Keys()...)
		}
	}

	slices.SortFunc(keys, objects.Key.Compare)
	return slices.Compact(keys)
}

// Restore restores the claims of an earlier process, and returns which of them hold. The owner of a
// claim that does not hold keeps the objects that it controls or, as far as is known, might
// control, unless another owner has claimed them.
//
// A claim holds unless it is on record as lost, or another owner of the same scope controls one of
// its objects and has that on record as well. Cluster-scoped owners precede namespaced ones, and
// older sets precede younger ones.
func (t *Table) Restore(records []Record, controllers Controllers) []bool {
	order := make([]int, len(records))
	ranks := make([]int, len(records))
	for i := range records {
		order[i], ranks[i] = i, records[i].rank(controllers)
	}

	slices.SortFunc(order, func(a, b int) int {
		x, y := &records[a], &records[b]
		return cmp.Or(
			cmp.Compare(ranks[a], ranks[b]), cmp.Compare(min(len(x.Owner.Namespace), 1), min(len(y.Owner.Namespace), 1)),
			x.Created.Compare(y.Created), cmp.Compare(x.UID, y.UID),
		)
	})

	held := make([]bool, len(records))
	for _, i := range order {
		r := &records[i]
		if held[i] = !r.Lost && t.Reclaim(r); !held[i] && !r.Unproven {
			t.keepFree(r, controllers)
		}
	}

	return held
}

// Reclaim restores one claim and reports whether it holds. It is safe while other claims are made.
func (t *Table) Reclaim(r *Record) bool {
	return t.ClaimOver(r.Owner, r.Keys(), r.over(), r.From...) == nil
}

// rank orders records by how certain it is that their claims held: proven claims first, then the
// ones on record as lost, then claims whose objects another owner controls.
func (r *Record) rank(controllers Controllers) int {
	switch {
	case r.Lost:
		return 2
	case len(controllers) > 0 && slices.ContainsFunc(r.Keys(), func(key objects.Key) bool { return r.elsewhere(key, controllers) }):
		return 3
	case r.Unproven:
		return 1
	}

	return 0
}

// elsewhere reports whether another owner controls an object, and neither hands it over nor is
// overruled.
func (r *Record) elsewhere(key objects.Key, controllers Controllers) bool {
	by, contested := controllers[key]
	return contested && by.UID != "" && by.UID != r.Owner.UID && !slices.Contains(r.From, by.UID) && (r.Lost || !Overrules(r.Owner, by))
}

// over returns the keys that the record takes from namespaced owners: all of them, if it proves
// that its owner held them.
func (r *Record) over() map[objects.Key]struct{} {
	over := map[objects.Key]struct{}{}
	if r.Owner.Namespace != "" || r.Unproven {
		return over
	}
	for _, key := range r.Keys() {
		over[key] = struct{}{}
	}
	return over
}

// keepFree claims the objects of a record that no owner holds, unless its owner is known not to
// control them.
func (t *Table) keepFree(r *Record, controllers Controllers) {
	keys := r.Keys()
	t.mu.Lock()
	defer t.mu.Unlock()
	var free []claim
	for _, key := range keys {
		by, known := controllers[key]
		if c := claimOf(key); t.holders[c] == nil && (!known || by.UID == r.Owner.UID) {
			free = append(free, c)
		}
	}

	t.take(r.Owner, free, nil)
}
