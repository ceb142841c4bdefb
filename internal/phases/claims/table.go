package claims

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"lockstep.run/lockstep/internal/objects"
)

// Holder is who can hold claims: an ObjectDeployment with all of its revisions,
// or an ObjectSet that stands alone.
type Holder struct {
	Kind, Namespace, Name string
	// UID tells a holder from a later one of the same name.
	UID string
}

// String returns "Kind namespace/name".
func (h Holder) String() string {
	if h.Namespace == "" {
		return h.Kind + " " + h.Name
	}
	return h.Kind + " " + h.Namespace + "/" + h.Name
}

// Conflict is the error of a claim that another holder stands in the way of.
type Conflict struct {
	Key    objects.Key
	Winner Holder
	// More is the number of further objects that are claimed by others.
	More int
}

// Error names the object, the winner and the remedy.
func (c *Conflict) Error() string { return c.Key.String() + " " + c.Reason() }

// Reason names the winner and the remedy.
func (c *Conflict) Reason() string {
	more := ""
	if c.More > 0 {
		more = fmt.Sprintf(" (and %d more objects are claimed by others)", c.More)
	}
	return fmt.Sprintf("belongs to %s%s: leave it out here, or release it there (package-operator.run/deletion-policy: Keep)", c.Winner, more)
}

// Table holds the claims of one target cluster. It is safe for concurrent use.
type Table struct {
	mu      sync.Mutex
	holders map[claim]*Holder
	held    map[string][]claim // by UID
	waiting map[string]Holder  // losers, by UID
	freed   func(loser Holder)
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

// NewTable returns an empty table. freed is called, outside of any lock, for
// each holder whose claim was refused before, when claims were given up since:
// it is time to ask again.
func NewTable(freed func(loser Holder)) *Table {
	return &Table{
		holders: map[claim]*Holder{},
		held:    map[string][]claim{},
		waiting: map[string]Holder{},
		freed:   freed,
	}
}

// Claim takes all keys for h, or none and returns a *Conflict that names the
// first one in key order that another holds. Holders in from yield their claims
// to h: that is how spec.previous hands objects over.
func (t *Table) Claim(h Holder, keys []objects.Key, from ...string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var conflict *Conflict
	asked := make([]claim, len(keys))
	for i, k := range keys {
		asked[i] = claimOf(k)
		other := t.holders[asked[i]]
		if other == nil || other.UID == h.UID || slices.Contains(from, other.UID) {
			continue
		}
		switch {
		case conflict == nil:
			conflict = &Conflict{Key: k, Winner: *other}
		case k.Compare(conflict.Key) < 0:
			conflict.Key, conflict.Winner = k, *other
			conflict.More++
		default:
			conflict.More++
		}
	}
	if conflict != nil {
		t.waiting[h.UID] = h
		return conflict
	}
	t.take(h, asked)
	return nil
}

func (t *Table) take(h Holder, asked []claim) {
	delete(t.waiting, h.UID)
	mine, losers := t.held[h.UID], map[string]bool{}
	for _, c := range asked {
		other := t.holders[c]
		if other == nil || other.UID != h.UID {
			mine = append(mine, c)
		}
		if other != nil && other.UID != h.UID {
			losers[other.UID] = true
		}
		t.holders[c] = &h
	}
	t.held[h.UID] = mine
	for uid := range losers {
		t.keep(uid, func(c claim) bool { return t.holders[c].UID == uid })
	}
}

// Retain gives up every claim of h that is not among keys.
func (t *Table) Retain(h Holder, keys map[objects.Key]struct{}) {
	kept := make(map[claim]struct{}, len(keys))
	for k := range keys {
		kept[claimOf(k)] = struct{}{}
	}
	t.mu.Lock()
	gaveUp := false
	t.keep(h.UID, func(c claim) bool {
		_, keep := kept[c]
		if !keep {
			delete(t.holders, c)
			gaveUp = true
		}
		return keep
	})
	losers := t.losers(gaveUp)
	t.mu.Unlock()
	for _, l := range losers {
		t.freed(l)
	}
}

// keep leaves a holder those of its claims that a function says.
func (t *Table) keep(uid string, is func(claim) bool) {
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

// Release gives up all claims of h, and its wish for those of others.
func (t *Table) Release(h Holder) {
	t.mu.Lock()
	delete(t.waiting, h.UID)
	t.mu.Unlock()
	t.Retain(h, nil)
}

func (t *Table) losers(gaveUp bool) []Holder {
	if !gaveUp {
		return nil
	}
	losers := make([]Holder, 0, len(t.waiting))
	for _, l := range t.waiting {
		losers = append(losers, l)
	}
	return losers
}

// Holder returns who holds key.
func (t *Table) Holder(key objects.Key) (Holder, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.holders[claimOf(key)]; h != nil {
		return *h, true
	}
	return Holder{}, false
}
