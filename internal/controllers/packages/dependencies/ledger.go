package dependencies

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// Packages reads Packages in their latest known states, for reading only.
type Packages interface {
	// In returns the Packages of a namespace; without one, ClusterPackages.
	In(ctx context.Context, namespace string) ([]corev1alpha1.GenericPackage, error)
	// DependentsOf returns the Packages that record an instance as the satisfier of a dependency.
	DependentsOf(ctx context.Context, i resolver.Instance) ([]corev1alpha1.GenericPackage, error)
	// Get returns an instance, or nil.
	Get(ctx context.Context, i resolver.Instance) corev1alpha1.GenericPackage
}

// Ledger records which Packages wait for which others, and which decisions about dependencies are
// not written yet. It is safe for concurrent use.
//
// A resolution is opened, and closed by a note of the names that it was resolved by. A change of a
// name enqueues the Packages that have a note of it, even if the change came while the resolution
// was open. No lock is held while a resolution is computed or written: its decision is committed,
// and counts for others as if it was written.
type Ledger struct {
	Packages Packages
	Enqueue  func(types.NamespacedName)

	mu sync.Mutex
	// notes are the names that the dependencies of Packages were resolved by: of packages, and of
	// APIs.
	notes map[types.NamespacedName][]string
	// open are the changes since the resolution of a Package was opened.
	open map[types.NamespacedName][]func(string) bool

	// deciding is held from the end of a survey to the decision that follows from it.
	deciding sync.Mutex
	decided  Decisions
	// ended counts the decisions of each namespace that were written or given up, and endedAll
	// counts all of them.
	ended    map[string]int
	endedAll int
}

// Open opens a resolution: changes are kept from now on, until it is known which of them matter.
func (l *Ledger) Open(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[types.NamespacedName][]func(string) bool{}
	}
	l.open[key] = nil
}

// Note closes a resolution with the names that it was resolved by.
func (l *Ledger) Note(key types.NamespacedName, names []string) {
	l.mu.Lock()
	changes := l.open[key]
	delete(l.open, key)
	if l.notes == nil {
		l.notes = map[types.NamespacedName][]string{}
	}
	if l.notes[key] = names; len(names) == 0 {
		delete(l.notes, key)
	}

	l.mu.Unlock()
	if slices.ContainsFunc(changes, func(changed func(string) bool) bool { return slices.ContainsFunc(names, changed) }) {
		l.Enqueue(key)
	}
}

// Drop forgets a Package.
func (l *Ledger) Drop(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.notes, key)
	delete(l.open, key)
}

// Changed enqueues the Packages in some namespaces that have a note of a name that changed, and
// reports whether there are any.
func (l *Ledger) Changed(in func(namespace string) bool, changed func(name string) bool) bool {
	var waiting []types.NamespacedName
	l.mu.Lock()
	for key, names := range l.notes {
		if in(key.Namespace) && slices.ContainsFunc(names, changed) {
			waiting = append(waiting, key)
		}
	}

	for key, changes := range l.open {
		if in(key.Namespace) {
			l.open[key] = append(changes, changed)
		}
	}

	l.mu.Unlock()
	for _, key := range waiting {
		l.Enqueue(key)
	}
	return len(waiting) > 0
}

// Survey returns the Packages that matter to a namespace's Packages, or to ClusterPackages: these,
// ClusterPackages, and dependents of ClusterPackages that heed all, with the decisions that are not
// written yet.
func (l *Ledger) Survey(ctx context.Context, namespace string) (k Known, err error) {
	err = l.survey(ctx, namespace, func(known Known) error { k = known; return nil })
	return k, err
}

// survey calls use with a survey, and with the lock held. It reads the caches without the lock,
// because that takes long for a namespace with many Packages. It repeats the read if a decision
// ended meanwhile, because the caches might have been read before it was written.
func (l *Ledger) survey(ctx context.Context, namespace string, use func(Known) error) error {
	for range limits.ConflictAttempts {
		var own, all int
		_ = l.locked(func() error { own, all = l.ended[namespace]+l.ended[""], l.endedAll; return nil })
		k, err := l.read(ctx, namespace)
		if err != nil {
			return err
		}
		used := false
		err = l.locked(func() error {
			if l.endedAll != all && (l.ended[namespace]+l.ended[""] != own || !k.within(namespace)) {
				return nil
			}
			used = true
			l.decided.apply(k.Installed)
			return use(k)
		})
		if used {
			return err
		}
	}
	// Frequent decisions must not starve a survey, so the last read holds the lock.
	return l.locked(func() error {
		k, err := l.read(ctx, namespace)
		if err != nil {
			return err
		}
		l.decided.apply(k.Installed)
		return use(k)
	})
}

// locked runs f while no other decision is made.
func (l *Ledger) locked(f func() error) error {
	l.deciding.Lock()
	defer l.deciding.Unlock()
	return f()
}

// read reads the Packages of a survey.
func (l *Ledger) read(ctx context.Context, namespace string) (Known, error) {
	todo, err := l.Packages.In(ctx, "")
	if err != nil {
		return Known{}, err
	}

	if namespace != "" {
		own, err := l.Packages.In(ctx, namespace)
		if err != nil {
			return Known{}, err
		}
		todo = slices.Concat(todo, own)
	}

	packages := map[resolver.Instance]corev1alpha1.GenericPackage{}
	for len(todo) > 0 {
		pkg := todo[0]
		todo = todo[1:]
		i := snapshot.InstanceOf(pkg)
		if _, again := packages[i]; !again && heedsAll(pkg) {
			dependents, err := l.Packages.DependentsOf(ctx, i)
			if err != nil {
				return Known{}, err
			}
			// A package that heeds all dependents can have them in any namespace.
			todo = append(todo, dependents...)
		}
		packages[i] = pkg
	}

	return NewKnown(packages), nil
}

// heedsAll reports whether Packages of namespaces count as dependents of a ClusterPackage.
func heedsAll(pkg corev1alpha1.GenericPackage) bool {
	policy := pkg.PackageSpec().UpgradePolicy
	return pkg.GetNamespace() == "" && policy != nil && policy.Dependents == corev1alpha1.DependentsAll
}

// Committed is a decision that counts for others until Done is called, which has to be once it is
// written, or given up.
type Committed struct {
	// Now are the Packages at that moment, and Outdated means that they changed since the
	// resolution read them.
	Now      Known
	Outdated bool
	Done     func()
}

// Commit commits the plan of a Package, if the resolution would come out as before, or in its last
// attempt if no package that it uses is being removed. Else Done is nil: it has to be made again.
func (l *Ledger) Commit(ctx context.Context, own resolver.Instance, plan *Plan, was Known, last bool) (c Committed, err error) {
	err = l.survey(ctx, own.Namespace, func(now Known) error {
		c.Now, c.Outdated = now, !Same(was, now, own, plan.Awaited)
		if !c.Outdated || last && plan.Remains(now) {
			c.Done = l.decide(ctx, own, plan.Decision())
		}
		return nil
	})
	return c, err
}

// decide makes a decision count for others until done is called. The caller holds the lock.
// Packages whose deletion the decision held are reconciled after done.
func (l *Ledger) decide(ctx context.Context, own resolver.Instance, d Decision) (done func()) {
	if l.decided == nil {
		l.decided = Decisions{}
	}

	l.decided[own] = d
	return func() {
		l.deciding.Lock()
		delete(l.decided, own)
		if l.ended == nil {
			l.ended = map[string]int{}
		}
		l.ended[own.Namespace]++
		l.endedAll++
		l.deciding.Unlock()
		for _, record := range d.Records {
			if pkg := l.Packages.Get(ctx, *record.Satisfier); pkg != nil && pkg.GetDeletionTimestamp() != nil {
				l.Enqueue(types.NamespacedName(*record.Satisfier))
			}
		}
	}
}

// Release is the fate of a package that another one depended on.
type Release struct {
	// Package is nil if there is no package to release; Others also depend on it.
	Package corev1alpha1.GenericPackage
	Others  []resolver.Instance
	// Done is set if the package will be deleted. Other Packages consider it as deleted until Done
	// is called.
	Done func()
}

// Release decides whether a package that satisfied a dependency is deleted with the dependent. If
// the dependent leaves its objects, they stay in use.
func (l *Ledger) Release(ctx context.Context, pkg corev1alpha1.GenericPackage, dependency string, at resolver.Instance, leaves bool) (r Release, err error) {
	own := snapshot.InstanceOf(pkg)
	err = l.survey(ctx, own.Namespace, func(k Known) (err error) {
		released := k.Packages[at]
		if released == nil || released.GetDeletionTimestamp() != nil || !Marked(own, released) {
			return nil
		}
		if r.Others, err = l.others(ctx, k, own, at); err != nil {
			return err
		}
		r.Package = released
		if len(r.Others) == 0 && Deletes(pkg, dependency, released) && !leaves {
			d := l.decided[own]
			d.Deletes = at
			r.Done = l.decide(ctx, own, d)
		}
		return nil
	})

	return r, err
}

// others returns the known Packages of all namespaces that record an instance, except one.
func (l *Ledger) others(ctx context.Context, k Known, own, at resolver.Instance) ([]resolver.Instance, error) {
	found := slices.Clone(DependentsBy(k.Installed)[at])
	dependents, err := l.Packages.DependentsOf(ctx, at)
	for _, pkg := range dependents {
		found = append(found, snapshot.InstanceOf(pkg))
	}
	found = slices.DeleteFunc(found, func(i resolver.Instance) bool { return i == own })
	slices.SortFunc(found, resolver.Instance.Compare)
	return slices.Compact(found), err
}
