package claims

import (
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
	return fmt.Sprintf("belongs to %s%s: delete it there, or leave it out here", c.Winner, more)
}

// Table holds the claims of one target cluster. It is safe for concurrent use.
type Table struct {
	mu      sync.Mutex
	holders map[objects.Key]*Holder
	held    map[string]map[objects.Key]struct{} // by UID
	waiting map[string]Holder                   // losers, by UID
	freed   func(loser Holder)
}

// NewTable returns an empty table. freed is called, outside of any lock, for
// each holder whose claim was refused before, when claims were given up since:
// it is time to ask again.
func NewTable(freed func(loser Holder)) *Table {
	return &Table{
		holders: map[objects.Key]*Holder{},
		held:    map[string]map[objects.Key]struct{}{},
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
	for _, k := range keys {
		other := t.holders[k]
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
	t.take(h, keys)
	return nil
}

func (t *Table) take(h Holder, keys []objects.Key) {
	delete(t.waiting, h.UID)
	mine := t.held[h.UID]
	if mine == nil {
		mine = make(map[objects.Key]struct{}, len(keys))
		t.held[h.UID] = mine
	}
	for _, k := range keys {
		if other := t.holders[k]; other != nil && other.UID != h.UID {
			delete(t.held[other.UID], k)
		}
		t.holders[k] = &h
		mine[k] = struct{}{}
	}
}

// Retain gives up every claim of h that is not among keys.
func (t *Table) Retain(h Holder, keys map[objects.Key]struct{}) {
	t.mu.Lock()
	gaveUp := false
	for k := range t.held[h.UID] {
		if _, ok := keys[k]; !ok {
			delete(t.held[h.UID], k)
			delete(t.holders, k)
			gaveUp = true
		}
	}
	if len(t.held[h.UID]) == 0 {
		delete(t.held, h.UID)
	}
	losers := t.losers(gaveUp)
	t.mu.Unlock()
	for _, l := range losers {
		t.freed(l)
	}
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
	if h := t.holders[key]; h != nil {
		return *h, true
	}
	return Holder{}, false
}
