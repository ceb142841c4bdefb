package claims

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
)

// Conflict is the error of a claim to objects that another owner holds.
type Conflict struct {
	Key    objects.Key
	Holder objects.Owner
	// More is the number of further objects that are claimed by others.
	More int
}

// Error names the object, its holder and the remedy.
func (c *Conflict) Error() string { return c.Key.String() + " " + c.Reason() }

// Reason names the holder and the remedy.
func (c *Conflict) Reason() string {
	more := ""
	if c.More > 0 {
		more = fmt.Sprintf(" (and %d more objects are claimed by others)", c.More)
	}
	return fmt.Sprintf("belongs to %s%s: leave it out here, or release it there (kubectl package release)", c.Holder, more)
}

// Table holds the claims of one target cluster. It is safe for concurrent use.
type Table struct {
	mu       sync.Mutex
	holders  map[claim]*objects.Owner
	held     map[types.UID][]claim
	waiters  map[types.UID]objects.Owner // whose claim was refused
	released func(waiter objects.Owner)
}

// claim stands for an object's key, in a quarter of its memory.
type claim [16]byte

func claimOf(key objects.Key) claim {
	text := make([]byte, 0, 256)
	for _, part := range []string{key.Group, key.Kind, key.Namespace, key.Name} {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	return claim(sum[:])
}

// NewTable returns an empty table. When claims are released, released is called outside
// of any lock for each owner whose claim was refused.
func NewTable(released func(waiter objects.Owner)) *Table {
	return &Table{
		holders: map[claim]*objects.Owner{}, held: map[types.UID][]claim{}, waiters: map[types.UID]objects.Owner{}, released: released,
	}
}

// Claim takes all keys for h, or none and returns a *Conflict that names the
// first one in key order that another owner holds. Claims of the owners in from are
// taken over, which is how spec.previous hands objects over.
func (t *Table) Claim(h objects.Owner, keys []objects.Key, from ...types.UID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	wanted, conflict := t.conflict(h, keys, from)
	if conflict != nil {
		t.waiters[h.UID] = h
		return conflict
	}
	t.take(h, wanted)
	return nil
}

// Check returns the error that Claim would return, and takes nothing.
func (t *Table) Check(h objects.Owner, keys []objects.Key, from ...types.UID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, conflict := t.conflict(h, keys, from); conflict != nil {
		t.waiters[h.UID] = h
		return conflict
	}
	delete(t.waiters, h.UID)
	return nil
}

func (t *Table) conflict(h objects.Owner, keys []objects.Key, from []types.UID) ([]claim, *Conflict) {
	var conflict *Conflict
	wanted := make([]claim, len(keys))
	for i, k := range keys {
		wanted[i] = claimOf(k)
		other := t.holders[wanted[i]]
		if other == nil || other.UID == h.UID || slices.Contains(from, other.UID) {
			continue
		}
		switch {
		case conflict == nil:
			conflict = &Conflict{Key: k, Holder: *other}
		case k.Compare(conflict.Key) < 0:
			conflict.Key, conflict.Holder = k, *other
			conflict.More++
		default:
			conflict.More++
		}
	}
	return wanted, conflict
}

func (t *Table) take(h objects.Owner, wanted []claim) {
	delete(t.waiters, h.UID)
	own, former := t.held[h.UID], map[types.UID]bool{}
	for _, c := range wanted {
		other := t.holders[c]
		if other == nil || other.UID != h.UID {
			own = append(own, c)
		}
		if other != nil && other.UID != h.UID {
			former[other.UID] = true
		}
		t.holders[c] = &h
	}
	t.held[h.UID] = own
	for uid := range former {
		t.keep(uid, func(c claim) bool { return t.holders[c].UID == uid })
	}
}

// Retain releases every claim of h that is not among keys.
func (t *Table) Retain(h objects.Owner, keys map[objects.Key]struct{}) {
	kept := make(map[claim]struct{}, len(keys))
	for k := range keys {
		kept[claimOf(k)] = struct{}{}
	}
	t.mu.Lock()
	releases := false
	t.keep(h.UID, func(c claim) bool {
		_, keep := kept[c]
		if !keep {
			delete(t.holders, c)
			releases = true
		}
		return keep
	})
	var waiters []objects.Owner
	if releases {
		waiters = slices.Collect(maps.Values(t.waiters))
	}
	t.mu.Unlock()
	for _, w := range waiters {
		t.released(w)
	}
}

// keep leaves an owner those of its claims that a function selects.
func (t *Table) keep(uid types.UID, is func(claim) bool) {
	held := slices.DeleteFunc(t.held[uid], func(c claim) bool { return !is(c) })
	if len(held) == 0 {
		delete(t.held, uid)
		return
	}
	if len(held) < cap(held) {
		held = append(make([]claim, 0, len(held)), held...)
	}
	t.held[uid] = held
}

// Release releases all claims of h, which does not wait for others any more either.
func (t *Table) Release(h objects.Owner) {
	t.mu.Lock()
	delete(t.waiters, h.UID)
	t.mu.Unlock()
	t.Retain(h, nil)
}

// Holder returns the owner that holds key.
func (t *Table) Holder(key objects.Key) (objects.Owner, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.holders[claimOf(key)]; h != nil {
		return *h, true
	}
	return objects.Owner{}, false
}
