package tracking

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/objects"
)

// kindUsers are the owners that have objects of a kind.
type kindUsers struct {
	mu     sync.RWMutex
	owners map[schema.GroupKind]sets.Set[objects.OwnerKey]
}

// Use declares the kinds of an owner's objects.
func (u *kindUsers) Use(owner objects.OwnerKey, kinds []schema.GroupKind) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for gk, users := range u.owners {
		if users.Delete(owner); len(users) == 0 {
			delete(u.owners, gk)
		}
	}

	for _, gk := range kinds {
		if u.owners[gk] == nil {
			u.owners[gk] = sets.Set[objects.OwnerKey]{}
		}
		u.owners[gk].Insert(owner)
	}
}

func (u *kindUsers) of(gk schema.GroupKind) []objects.OwnerKey {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.owners[gk].UnsortedList()
}
