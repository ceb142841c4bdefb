package packages

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/resolver"
	"lockstep.run/lockstep/internal/resolver/snapshot"
)

// resolving is what goes on with dependencies in this process. Packages of one scope, a namespace or all ClusterPackages, are
// resolved one after the other, so that two of them do not install a third one each. No lock is held while a resolution is
// computed or written: what was decided is noted, and counts for others as if it was written.
type resolving struct {
	resolutions, releases turns

	mu sync.Mutex
	// decided is what Packages are about to record and to delete, by these.
	decided map[resolver.Instance]decision
}

// decision is what is being written for a Package.
type decision struct {
	records []resolver.Requirement
	deletes resolver.Instance
}

// turns are those of the namespaces, and that of ClusterPackages, which waits for no namespace.
type turns struct {
	namespaces, cluster queueing.Requests[types.NamespacedName]
}

func (t *turns) of(namespace string) *queueing.Requests[types.NamespacedName] {
	if namespace == "" {
		return &t.cluster
	}
	return &t.namespaces
}

func (r *Reconciler) setupTurns() {
	for most, t := range map[int]*turns{limits.ResolutionsAtOnce: &r.resolving.resolutions, limits.ReleasesAtOnce: &r.resolving.releases} {
		t.namespaces.Most, t.namespaces.Enqueue, t.cluster.Enqueue = most, r.enqueue, r.enqueue
	}
}

// begin reports whether it is the turn of a Package; if so, end has to be called. Else it is reconciled again in its turn.
func (s *reconciliation) begin(t *turns) (end func(), admitted bool) {
	key := keyOf(s.pkg)
	if end, admitted = t.of(key.Namespace).Begin(key.Namespace, key); !admitted {
		s.waits = t
	}
	return end, admitted
}

// leave removes a Package from all queues but the one that its last reconcile entered.
func (r *Reconciler) leave(req reconcile.Request, s *reconciliation) {
	for _, t := range []*turns{&r.resolving.resolutions, &r.resolving.releases} {
		if s == nil || s.waits != t {
			t.of(req.Namespace).Leave(req.Namespace, req.NamespacedName)
		}
	}
}

// known is what is known of the Packages that matter to a scope at one moment, for reading only.
type known struct {
	packages  map[resolver.Instance]corev1alpha1.GenericPackage
	installed []resolver.Installed
}

// survey returns the Packages that matter to those of a namespace, or to ClusterPackages: these, ClusterPackages, and what
// depends on ClusterPackages that heed all, in their latest known states and with what was decided.
func (r *Reconciler) survey(ctx context.Context, namespace string) known {
	r.resolving.mu.Lock()
	defer r.resolving.mu.Unlock()
	return r.surveyed(ctx, namespace)
}

// surveyed is survey with the lock held.
func (r *Reconciler) surveyed(ctx context.Context, namespace string) known {
	k := known{packages: map[resolver.Instance]corev1alpha1.GenericPackage{}}
	for _, obj := range r.Fresh.Created(generatedOwner) {
		if pkg, ok := obj.(corev1alpha1.GenericPackage); ok && (pkg.GetNamespace() == "" || pkg.GetNamespace() == namespace) {
			k.packages[snapshot.InstanceOf(pkg)] = pkg
		}
	}
	cached := r.packagesIn("")
	if namespace != "" {
		cached = append(cached, r.packagesIn(namespace)...)
	}
	for len(cached) > 0 {
		pkg, ok := r.Fresh.Latest(cached[0]).(corev1alpha1.GenericPackage)
		if cached = cached[1:]; !ok {
			continue
		}
		i := snapshot.InstanceOf(pkg)
		if _, again := k.packages[i]; !again && heedsAll(pkg) {
			cached = append(cached, r.dependentsOf(ctx, i)...)
		}
		k.packages[i] = pkg
	}
	k.installed = installedOf(k.packages)
	r.resolving.apply(k.installed)
	return k
}

func heedsAll(pkg corev1alpha1.GenericPackage) bool {
	policy := pkg.PackageSpec().UpgradePolicy
	return pkg.GetNamespace() == "" && policy != nil && policy.Dependents == corev1alpha1.DependentsAll
}

// apply adds what was decided as if it was written.
func (r *resolving) apply(installed []resolver.Installed) {
	deleted := map[resolver.Instance]bool{}
	for _, d := range r.decided {
		deleted[d.deletes] = true
	}
	for k := range installed {
		i := &installed[k]
		i.Deleting = i.Deleting || deleted[i.Instance]
		for _, record := range r.decided[i.Instance].records {
			if !slices.ContainsFunc(i.Requirements, func(was resolver.Requirement) bool { return equality.Semantic.DeepEqual(was, record) }) {
				i.Requirements = append(slices.Clip(i.Requirements), record)
			}
		}
	}
}

// packagesIn returns the Packages of a namespace, or without one ClusterPackages, from the cache, for reading only.
func (r *Reconciler) packagesIn(namespace string) []corev1alpha1.GenericPackage {
	list := corev1alpha1.ScopeOf(namespace).NewPackageList()
	if err := r.Client.List(context.Background(), list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped, and with it this process
	}
	return list.GenericPackages()
}

// commit notes what the Package is about to record, if what it was resolved by is what is known now, or in the last attempt
// if nothing that it uses goes. Until done is called, that counts for others.
func (s *reconciliation) commit(ctx context.Context, d *dependencyView, awaited []string, was known, last bool) (now known, done func(), ok bool) {
	own := snapshot.InstanceOf(s.pkg)
	s.resolving.mu.Lock()
	defer s.resolving.mu.Unlock()
	now = s.surveyed(ctx, own.Namespace)
	if !sameKnown(was, now, own, awaited) {
		if !last || !remain(d, now) {
			return now, nil, false
		}
		s.Requeue(limits.ConflictRetry)
	}
	decided := decision{}
	for _, r := range snapshot.RequirementsOf(&corev1alpha1.PackageStatus{Dependencies: d.entries}) {
		if r.Satisfier != nil {
			decided.records = append(decided.records, r)
		}
	}
	return now, s.note(ctx, own, decided), true
}

// note notes a decision with the lock held, and returns what takes it back. What is held by what was not recorded in the end
// is reconciled then.
func (r *Reconciler) note(ctx context.Context, own resolver.Instance, d decision) (done func()) {
	if r.resolving.decided == nil {
		r.resolving.decided = map[resolver.Instance]decision{}
	}
	r.resolving.decided[own] = d
	return func() {
		r.resolving.mu.Lock()
		delete(r.resolving.decided, own)
		r.resolving.mu.Unlock()
		for _, record := range d.records {
			pkg, key := corev1alpha1.ScopeOf(record.Satisfier.Namespace).NewPackage(), types.NamespacedName(*record.Satisfier)
			if err := r.Client.Get(ctx, key, pkg); err == nil && pkg.GetDeletionTimestamp() != nil {
				r.enqueue(key)
			}
		}
	}
}

// remain reports whether what a plan uses is there, and not being deleted.
func remain(d *dependencyView, now known) bool {
	uses := func(i resolver.Instance) bool {
		at, found := slices.BinarySearchFunc(now.installed, i, func(in resolver.Installed, i resolver.Instance) int { return in.Compare(i) })
		return found && !now.installed[at].Deleting
	}
	created := map[resolver.Instance]bool{}
	for _, step := range d.steps {
		if created[step.Instance] = step.Create; !step.Create && !uses(step.Instance) {
			return false
		}
	}
	return !slices.ContainsFunc(d.result.Outcomes, func(o resolver.Outcome) bool {
		return o.Satisfier != nil && o.Reason != corev1alpha1.ReasonNotAvailable && !created[*o.Satisfier] && !uses(*o.Satisfier)
	})
}

// sameKnown reports whether a resolution by what is known of some packages and APIs comes out as before. Of others it does not matter
// whether they are available.
func sameKnown(was, now known, own resolver.Instance, awaited []string) bool {
	names := map[string]bool{}
	for _, name := range awaited {
		names[name] = true
	}
	facts := func(i resolver.Installed) resolver.Installed {
		matters := names[i.Package] || slices.ContainsFunc(i.Provides, func(api corev1alpha1.ProvidedAPI) bool {
			return names[resolver.KeyOf(api.APIVersion, api.Kind)]
		})
		i.Available = i.Available && matters
		return i
	}
	return slices.EqualFunc(was.installed, now.installed, func(a, b resolver.Installed) bool {
		return a.Instance == b.Instance && (a.Instance == own || equality.Semantic.DeepEqual(facts(a), facts(b)))
	})
}

// others returns what but a Package records an instance, as is known, and of all namespaces.
func (r *Reconciler) others(ctx context.Context, k known, own, at resolver.Instance) []resolver.Instance {
	found := map[resolver.Instance]bool{}
	for _, i := range dependentsBy(k.installed)[at] {
		found[i] = true
	}
	for _, pkg := range r.dependentsOf(ctx, at) {
		found[snapshot.InstanceOf(pkg)] = true
	}
	delete(found, own)
	return slices.SortedFunc(maps.Keys(found), resolver.Instance.Compare)
}
