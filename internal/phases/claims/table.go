package claims

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/objects"
)

// Conflict is the error of a claim to objects that another owner holds.
type Conflict struct {
	Key    objects.Key
	Holder objects.Owner
	// Claimant is the owner whose claim failed.
	Claimant objects.Owner
	// More is the number of further objects that others have claimed.
	More int
	// Adopt is the command that makes a holder that was installed as a dependency the user's own.
	// The holder releases no object before that.
	Adopt string
}

// Error names the object, its holder and the remedy.
func (c *Conflict) Error() string { return c.Key.String() + " " + c.Reason() }

// Reason names the holder and the remedy.
func (c *Conflict) Reason() string {
	more := ""
	if c.More > 0 {
		more = fmt.Sprintf(" (and %d more objects are claimed by others)", c.More)
	}

	command := "kubectl package release " + word(strings.ToLower(c.Key.Kind)+"/"+c.Key.Name)
	if c.Holder.Namespace != "" {
		command += " -n " + c.Holder.Namespace
	}
	if c.Adopt != "" {
		return fmt.Sprintf("belongs to %s%s, which is installed as a dependency: leave it out here, or delete this package and use that one; "+
			"to decide on its version and values, make it your own (%s)", c.Holder, more, c.Adopt)
	}

	over := ""
	if Overrules(c.Claimant, c.Holder) {
		over = "; spec.collisionProtection: None here takes it over"
	}

	there := "release it there (" + command + ")"
	if strings.HasSuffix(c.Holder.Kind, "ObjectTemplate") {
		there = "let the template render another name"
	}
	return fmt.Sprintf("belongs to %s%s: leave it out here, or %s%s", c.Holder, more, there, over)
}

// plain matches texts that are a single word in any shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9/.:_-]+$`)

// word quotes the name of an object for a shell. Package authors choose names, and a role can have
// any name.
func word(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Overrules reports whether an owner with collisionProtection None takes precedence over the holder
// of an object: cluster-scoped owners do over namespaced ones.
func Overrules(claimant, holder objects.Owner) bool {
	return claimant.Kind != "" && claimant.Namespace == "" && holder.Namespace != ""
}

// Table holds the claims of one target cluster. It is safe for concurrent use.
type Table struct {
	mu      sync.Mutex
	holders map[claim]*objects.Owner
	held    map[types.UID][]claim
	waiters map[types.UID]waiter
	// waiting has the waiters for each claim.
	waiting map[claim]map[types.UID]struct{}
	// overruled are owners that lost claims without handing them over.
	overruled map[types.UID]struct{}
	wake      func(objects.Owner)
}

// waiter is an owner whose claim was refused, with the claims it waits for.
type waiter struct {
	objects.Owner
	refused []claim
}

// claim represents an object's key in a quarter of its memory.
type claim [16]byte

func claimOf(key objects.Key) claim {
	text := make([]byte, 0, 256)
	for _, part := range []string{key.Group, key.Kind, key.Namespace, key.Name} {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	return claim(sum[:])
}

// NewTable returns an empty table. It calls wake outside of any lock: for each owner that was
// refused a claim when that claim is released, and for an owner that is overruled.
func NewTable(wake func(objects.Owner)) *Table {
	return &Table{
		holders: map[claim]*objects.Owner{}, held: map[types.UID][]claim{}, waiters: map[types.UID]waiter{},
		waiting: map[claim]map[types.UID]struct{}{}, overruled: map[types.UID]struct{}{}, wake: wake,
	}
}

// Claim takes all keys for h or none. In the latter case it returns a *Conflict with the first key,
// in key order, that another owner holds. It takes over claims of the owners in from, which is how
// spec.previous hands objects over.
func (t *Table) Claim(h objects.Owner, keys []objects.Key, from ...types.UID) error {
	return t.ClaimOver(h, keys, nil, from...)
}

// ClaimOver is Claim, but also takes over the keys in over from owners that h overrules.
func (t *Table) ClaimOver(h objects.Owner, keys []objects.Key, over map[objects.Key]struct{}, from ...types.UID) error {
	t.mu.Lock()
	wanted, conflict := t.conflict(h, keys, over, from)
	if conflict != nil {
		t.mu.Unlock()
		return conflict
	}

	overruled := t.take(h, wanted, from)
	t.mu.Unlock()
	for _, other := range overruled {
		t.wake(other)
	}

	return nil
}

// Check returns the error that ClaimOver would return, without taking claims.
func (t *Table) Check(h objects.Owner, keys []objects.Key, over map[objects.Key]struct{}, from ...types.UID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, conflict := t.conflict(h, keys, over, from); conflict != nil {
		return conflict
	}
	return nil
}

// conflict returns the claims of keys, and why h cannot have all of them. In that case h waits for
// the others; otherwise it waits for none.
func (t *Table) conflict(h objects.Owner, keys []objects.Key, over map[objects.Key]struct{}, from []types.UID) ([]claim, *Conflict) {
	var conflict *Conflict
	var refused []claim
	wanted := make([]claim, len(keys))
	for i, k := range keys {
		wanted[i] = claimOf(k)
		other := t.holders[wanted[i]]
		if other == nil || other.UID == h.UID || slices.Contains(from, other.UID) {
			continue
		}
		if _, takes := over[k]; takes && Overrules(h, *other) {
			continue
		}
		refused = append(refused, wanted[i])
		switch {
		case conflict == nil:
			conflict = &Conflict{Key: k, Holder: *other, Claimant: h}
		case k.Compare(conflict.Key) < 0:
			conflict.Key, conflict.Holder = k, *other
			conflict.More++
		default:
			conflict.More++
		}
	}

	t.await(h, refused)
	return wanted, conflict
}

// await enqueues an owner when these claims are released. It replaces earlier ones.
func (t *Table) await(h objects.Owner, refused []claim) {
	for _, c := range t.waiters[h.UID].refused {
		if delete(t.waiting[c], h.UID); len(t.waiting[c]) == 0 {
			delete(t.waiting, c)
		}
	}

	if len(refused) == 0 {
		delete(t.waiters, h.UID)
		return
	}

	t.waiters[h.UID] = waiter{Owner: h, refused: refused}
	for _, c := range refused {
		if t.waiting[c] == nil {
			t.waiting[c] = map[types.UID]struct{}{}
		}
		t.waiting[c][h.UID] = struct{}{}
	}
}

// take returns the owners that were overruled.
func (t *Table) take(h objects.Owner, wanted []claim, from []types.UID) []objects.Owner {
	own, former := t.held[h.UID], map[types.UID]objects.Owner{}
	for _, c := range wanted {
		other := t.holders[c]
		if other == nil || other.UID != h.UID {
			own = append(own, c)
		}
		if other != nil && other.UID != h.UID {
			former[other.UID] = *other
		}
		t.holders[c] = &h
	}

	t.held[h.UID] = own
	var overruled []objects.Owner
	for uid, other := range former {
		t.keep(uid, func(c claim) bool { return t.holders[c].UID == uid })
		if !slices.Contains(from, uid) {
			t.overruled[uid] = struct{}{}
			overruled = append(overruled, other)
		}
	}

	return overruled
}

// Overruled reports, once, whether an owner lost claims without handing them over.
func (t *Table) Overruled(h objects.Owner) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, was := t.overruled[h.UID]
	delete(t.overruled, h.UID)
	return was
}

// Retain releases every claim of h that is not among keys.
func (t *Table) Retain(h objects.Owner, keys map[objects.Key]struct{}) {
	kept := make(map[claim]struct{}, len(keys))
	for k := range keys {
		kept[claimOf(k)] = struct{}{}
	}

	t.mu.Lock()
	waiters := map[types.UID]objects.Owner{}
	t.keep(h.UID, func(c claim) bool {
		_, keep := kept[c]
		if !keep {
			delete(t.holders, c)
			for uid := range t.waiting[c] {
				waiters[uid] = t.waiters[uid].Owner
			}
		}
		return keep
	})

	t.mu.Unlock()
	for _, w := range waiters {
		t.wake(w)
	}
}

// keep reduces an owner's claims to those that a function selects.
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

// Release releases all claims of h, and ends its waiting for others.
func (t *Table) Release(h objects.Owner) {
	t.mu.Lock()
	t.await(h, nil)
	delete(t.overruled, h.UID)
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
