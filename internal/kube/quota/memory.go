package quota

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sync"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

// Memory shares the memory of the process. A nil Memory is one without limits. It is safe for
// concurrent use.
type Memory struct {
	// work is the semaphore that large pieces of work acquire, in bytes.
	work          *queueing.Semaphore
	limit, budget int64

	mu    sync.Mutex
	held  map[Key]int64
	of    map[string]int64
	total int64
	// tenants is the part of total that namespaces hold.
	tenants int64
}

// Key identifies a holder of memory. Cluster-scoped holders have no namespace. ID
// distinguishes holders with one name.
type Key struct{ Namespace, Name, ID string }

// New returns an account of a limit in bytes; without one, of the limit that config sets.
func New(limit int64) *Memory {
	if limit <= 0 || limit == math.MaxInt64 {
		limit = limits.MemoryDefault
	}
	return &Memory{
		work: queueing.NewSemaphore(limit/limits.MemoryWorkShare, limit/limits.MemoryWorkShare), limit: limit, budget: limit / 8 * limits.MemoryHeldEighths,
		held: map[Key]int64{}, of: map[string]int64{},
	}
}

// Of returns an account of a part of the memory that is held, without work.
func Of(budget int64) *Memory {
	return &Memory{limit: budget, budget: budget, held: map[Key]int64{}, of: map[string]int64{}}
}

// Limit returns the limit in bytes; zero for none.
func (a *Memory) Limit() int64 {
	if a == nil {
		return 0
	}
	return a.limit
}

// PackageBytes is the limit in bytes for the files of one package, and for the JSON of its objects.
func (a *Memory) PackageBytes() int64 {
	if a == nil {
		return limits.PackageBytes
	}
	return min(limits.PackageBytes, a.limit/limits.MemoryPackageShare)
}

// Acquire acquires memory for work, in turn by namespace: all that there is for work, at most. The
// result releases it.
func (a *Memory) Acquire(ctx context.Context, namespace string, n int64) (release func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	return a.work.Acquire(ctx, namespace, n)
}

// AtRest returns how much memory an object takes that is rolled out, by its JSON: that is kept, with
// a record of the object and of its fields.
func AtRest(object []byte) int64 {
	fields := int64(bytes.Count(object, []byte(",")))
	return int64(len(object)) + limits.MemoryPerObject + limits.MemoryPerField*fields
}

// Exceeded is the error if a namespace would exceed its share. Its text does not depend on the
// momentary use by others.
type Exceeded struct {
	Key
	Wants, Budget, Limit int64
}

// Error names the excess, and the remedy.
func (e *Exceeded) Error() string {
	where := ""
	if e.Namespace != "" {
		where = " from the namespace " + e.Namespace
	}
	return fmt.Sprintf("%s would take %s of the manager's memory, more than its share: packages, repositories and sources of templates of all namespaces "+
		"have %s together, and one namespace at most twice the rest of it. Remove some of them%s, or raise GOMEMLIMIT (%s) and the memory limit of the manager",
		e.Name, mebibytes(e.Wants), mebibytes(e.Budget), where, mebibytes(e.Limit))
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// Hold sets the bytes of a key to n. If that is an increase beyond the share of the namespace, the
// old number stays and the error is *Exceeded. Zero bytes remove the key.
func (a *Memory) Hold(key Key, n int64) error {
	if a == nil {
		return nil
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.allowed(key, n) {
		return &Exceeded{Key: key, Wants: n, Budget: a.budget, Limit: a.limit}
	}

	a.set(key, n)
	return nil
}

// Count is Hold for an object that exists already, and cannot be refused.
func (a *Memory) Count(key Key, n int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set(key, n)
}

// Fits reports whether Hold would be allowed.
func (a *Memory) Fits(key Key, n int64) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.allowed(key, n)
}

// allowed decides whether a key can hold n. mu is held.
func (a *Memory) allowed(key Key, n int64) bool {
	more := n - a.held[key]
	switch own := a.of[key.Namespace] + more; {
	case more <= 0:
		return true
	case key.Namespace == "":
		return a.total+more <= a.budget
	case own <= a.limit/limits.MemoryAllowanceShare:
		return true
	default:
		return own <= 2*(a.budget/4*3-a.tenants-more) && a.total+more <= a.budget
	}
}

// set records the memory that a key holds. mu is held.
func (a *Memory) set(key Key, n int64) {
	n = max(n, 0)
	more := n - a.held[key]
	if a.held[key] = n; n == 0 {
		delete(a.held, key)
	}
	a.total += more
	if key.Namespace != "" {
		a.tenants += more
	}
	if a.of[key.Namespace] += more; a.of[key.Namespace] == 0 {
		delete(a.of, key.Namespace)
	}
}
