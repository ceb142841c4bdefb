package watches

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/graph"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/ui/page"
)

// How often and how long a package is examined.
const (
	Interval = 250 * time.Millisecond // between two pieces of a stream: faster changes are skipped

	pageDiagnosis = 20 * time.Second // of the search for a cause
)

// Details open packages to watch.
type Details struct {
	cluster *cluster.Cluster
	// anyKind returns a client for all kinds. It is shared, so that discovery runs once.
	anyKind func() (client.Client, error)
}

// NewDetails returns the Details of a cluster.
func NewDetails(cl *cluster.Cluster) *Details {
	return &Details{cluster: cl, anyKind: sync.OnceValues(cl.AnyKind)}
}

// Detail is one package with its revisions. It has its own two watches.
type Detail struct {
	details *Details
	target  progress.Target
	topic

	mu    sync.Mutex
	shown page.Observed

	// ready means that the package was read, and complete that its revisions were, too.
	ready, complete bool
	// latest is the last observed state, and examined is the state that the cause belongs to.
	// searching is set during a search.
	latest    progress.Snapshot
	examined  string
	searching bool
}

// Open watches a package until ctx ends.
func (d *Details) Open(ctx context.Context, t progress.Target, uid types.UID) *Detail {
	one := &Detail{details: d, target: t}
	go one.run(ctx, d.cluster.Observe(ctx, t, uid))
	return one
}

// Observed returns the currently known state. ok is false before the first lists are complete.
func (o *Detail) Observed() (shown page.Observed, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shown, o.ready
}

// Await waits for the package. Up to the given time, it also waits for its revisions, and for the
// cause if the package is not available.
func (o *Detail) Await(ctx context.Context, cause time.Duration) {
	changed, end := o.Subscribe()
	defer end()
	late := time.NewTimer(cause)
	defer late.Stop()

	for patience := true; ; {
		o.mu.Lock()
		done := o.ready && (!patience || o.complete && !o.searching)
		o.mu.Unlock()
		if done {
			return
		}

		select {
		case <-changed:
		case <-late.C:
			patience = false
		case <-ctx.Done():
			return
		}
	}
}

// run follows the package until ctx ends. Slow computations run less often.
func (o *Detail) run(ctx context.Context, observer *cluster.Observer) {
	for {
		select {
		case <-observer.Changed():
		case <-ctx.Done():
			return
		}

		var took time.Duration
		err := panics.Guard(ctx, "reading "+o.target.String(), func() error {
			snap, ok, err := observer.Snapshot(ctx) // it requests slices once, which needs no processor
			begin := time.Now()
			if ok || err != nil {
				o.observe(ctx, observer, snap, err)
			}
			took = time.Since(begin)
			return nil
		})
		if err != nil {
			o.mu.Lock()
			o.shown.Note, o.ready = err.Error(), true
			o.mu.Unlock()
		}

		o.publish()
		select {
		// A slow computation gets four times its duration as a pause, so that it uses at most a
		// fifth of a processor.
		case <-time.After(max(Interval/2, 4*took)):
		case <-ctx.Done():
			return
		}
	}
}

// observe updates the shown state.
func (o *Detail) observe(ctx context.Context, observer *cluster.Observer, snap progress.Snapshot, err error) {
	shown := page.Observed{}
	if err != nil {
		shown.Note = err.Error()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.complete = observer.Complete()
	if o.ready = true; err != nil || snap.Package == nil {
		shown.Gone = err == nil
		if err != nil { // the last known state stays
			shown = o.shown
			shown.Note = err.Error()
		}
		o.shown = shown

		return
	}

	shown.State, shown.Report = progress.Of(snap), progress.ReportOf(snap)
	shown.Account = snap.Package.PackageSpec().ServiceAccountName
	shown.Dependencies = graph.Of([]corev1alpha1.GenericPackage{snap.Package}).Node(graph.KeyOf(snap.Package)).Dependencies
	shown.Revisions = revisionsOf(observer.Sets(), snap.Package.PackageStatus())
	shown.Cause, shown.CauseNote = o.shown.Cause, o.shown.CauseNote
	o.shown = shown
	o.examine(ctx, snap)
}

// examine searches for the cause of an unavailable package, once for each state. The caller holds
// the lock.
func (o *Detail) examine(ctx context.Context, snap progress.Snapshot) {
	// The state is identified by the versions of its objects, so that a repeated event starts no
	// search.
	state := snap.Package.GetResourceVersion()
	if snap.Set != nil {
		state += "/" + snap.Set.GetResourceVersion()
	}
	if o.shown.Report.Summary == summary.Available {
		o.shown.Cause, o.shown.CauseNote, o.examined = nil, "", ""
		return
	}

	if o.latest = snap; o.searching || o.examined == state {
		return
	}
	o.searching, o.examined = true, state
	go func() {
		var d *diagnose.Diagnosis
		err := panics.Guard(ctx, "looking for the cause", func() (err error) {
			d, err = o.details.diagnose(ctx, o.target, snap.Package)
			return err
		})

		o.mu.Lock()
		o.searching = false
		if o.shown.Cause, o.shown.CauseNote = d, ""; err != nil {
			o.shown.CauseNote = err.Error()
		}
		if ctx.Err() == nil {
			o.examine(ctx, o.latest) // it might have changed in the meantime
		}

		o.mu.Unlock()
		o.publish()
	}()
}

// diagnose searches for the cause within a limited time.
func (d *Details) diagnose(ctx context.Context, t progress.Target, pkg corev1alpha1.GenericPackage) (*diagnose.Diagnosis, error) {
	ctx, cancel := context.WithTimeout(ctx, pageDiagnosis)
	defer cancel()
	all, err := d.anyKind()
	if err != nil {
		return nil, err
	}
	return diagnose.PackageBy(ctx, d.cluster, all, t, pkg)
}

// revisionsOf returns the revisions, newest first.
func revisionsOf(sets []corev1alpha1.GenericObjectSet, status *corev1alpha1.PackageStatus) []page.Revision {
	slices.SortFunc(sets, objectsets.ByRevision)
	var all []page.Revision
	for i, set := range slices.Backward(sets) {
		all = append(all, page.Revision{
			Number: set.ObjectSetSpec().Revision, Created: set.GetCreationTimestamp(), Cause: cluster.ChangeCause(sets[:i], set),
			Version: set.GetLabels()[corev1alpha1.PackageVersionLabel], Image: set.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation],
			Succeeded: meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded),
			InCharge:  set.GetName() == status.CurrentRevision, Awaiting: set.GetName() == status.WaitingRevision,
			Archived: set.ObjectSetSpec().LifecycleState == corev1alpha1.ObjectSetLifecycleStateArchived,
		})
	}

	return all
}
