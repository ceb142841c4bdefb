package watches

import (
	"cmp"
	"context"
	"fmt"
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
	"lockstep.run/lockstep/internal/ui/page"
)

// How often and for how many packages pages are drawn.
const (
	Interval     = 250 * time.Millisecond // between two pieces of a stream: what changes more often is not read
	MaxObservers = 16                     // packages that are watched with their revisions at a time, a stream each and those just left

	pageObserverIdle = 30 * time.Second // after which a package is watched no more that no page shows
	pageDiagnosis    = 20 * time.Second // of the search for a cause
)

// Details are the packages that are looked at.
type Details struct {
	ctx     context.Context
	cluster *cluster.Cluster

	mu   sync.Mutex
	open map[types.UID]*Detail
	// all is a client for all kinds; its discovery is made once.
	all client.Client
}

// NewDetails returns an empty set, whose watches end with ctx.
func NewDetails(ctx context.Context, cl *cluster.Cluster) *Details {
	return &Details{ctx: ctx, cluster: cl, open: map[types.UID]*Detail{}}
}

// Detail is one package with its revisions, by two watches of its own.
type Detail struct {
	details *Details
	target  progress.Target
	uid     types.UID
	cancel  context.CancelFunc
	topic   topic
	// holders and idle are guarded by details.
	holders int
	idle    *time.Timer

	mu    sync.Mutex
	shown page.Observed
	// ready: the package was read; complete: its revisions were, too.
	ready, complete bool
	// examined is the state of the package and its revision that the cause is of; searching is set during a search.
	examined  string
	searching bool
	// again searches for what a search has not found: it failed or took too long, or the state changed during it. It is called
	// with the lock, and nil where there is nothing to search for.
	again func()
}

// Open watches a package, or uses the watches that are open. It is released by Release.
func (d *Details) Open(t progress.Target, uid types.UID) (*Detail, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.open[uid]
	if one == nil {
		if err := d.makeRoom(); err != nil {
			return nil, err
		}
		one = &Detail{details: d, target: t, uid: uid}
		var ctx context.Context
		ctx, one.cancel = context.WithCancel(d.ctx)
		d.open[uid] = one
		go one.run(ctx, d.cluster.Observe(ctx, t, uid))
	}
	one.retry()
	one.holders++
	if one.idle != nil {
		one.idle.Stop()
	}
	return one, nil
}

// retry searches for a cause that was not found when it was searched for.
func (o *Detail) retry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.searching && o.again != nil {
		o.again()
	}
}

// makeRoom ends the watches of a package that no page shows where there are too many.
func (d *Details) makeRoom() error {
	for uid, one := range d.open {
		if len(d.open) < MaxObservers {
			return nil
		}
		if one.holders == 0 {
			d.end(uid, one)
		}
	}
	if len(d.open) >= MaxObservers {
		return fmt.Errorf("%d packages are looked at already: close other tabs of this page", MaxObservers)
	}
	return nil
}

func (d *Details) end(uid types.UID, one *Detail) {
	one.cancel()
	delete(d.open, uid)
}

// Release ends the watches, unless they are opened again soon.
func (o *Detail) Release() {
	d := o.details
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.holders--; o.holders > 0 {
		return
	}
	o.idle = time.AfterFunc(pageObserverIdle, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if o.holders == 0 && d.open[o.uid] == o {
			d.end(o.uid, o)
		}
	})
}

// Subscribe returns a channel that is sent to after one or more changes, and its end.
func (o *Detail) Subscribe() (<-chan struct{}, func()) { return o.topic.subscribe() }

// Observed is the state as it is known now; ok is false before the first lists are complete.
func (o *Detail) Observed() (shown page.Observed, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shown, o.ready
}

// Await waits for the package and, for so long, for its revisions and for the cause where it is not available.
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

// run follows the package until ctx ends. What takes long to compute is computed less often.
func (o *Detail) run(ctx context.Context, observer *cluster.Observer) {
	for {
		select {
		case <-observer.Changed():
		case <-ctx.Done():
			return
		}
		var took time.Duration
		err := panics.Guard(ctx, "reading "+o.target.String(), func() error {
			snap, ok, err := observer.Snapshot(ctx) // it requests slices once, which takes no processor
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
		o.topic.publish()
		select {
		case <-time.After(max(Interval/2, 4*took)):
		case <-ctx.Done():
			return
		}
	}
}

// observe updates what is shown.
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

// examine looks for the cause of a package that is not available, once for each state, and again where it was not found and the
// package is opened again. It is called with the lock.
func (o *Detail) examine(ctx context.Context, snap progress.Snapshot) {
	state := snap.Package.GetResourceVersion()
	if snap.Set != nil {
		state += "/" + snap.Set.GetResourceVersion()
	}
	if o.shown.Report.Summary == progress.SummaryAvailable {
		o.shown.Cause, o.shown.CauseNote, o.examined, o.again = nil, "", "", nil
		return
	}
	search := func() { o.search(ctx, state, snap) }
	switch {
	case o.examined == state:
	case o.searching:
		o.again = search
	default:
		search()
	}
}

// search looks for the cause of a state. It is called with the lock, and not during another search.
func (o *Detail) search(ctx context.Context, state string, snap progress.Snapshot) {
	o.searching, o.examined, o.again = true, state, nil
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
		switch {
		case o.shown.Report.Summary == progress.SummaryAvailable:
			o.shown.Cause, o.shown.CauseNote = nil, ""
		case ctx.Err() != nil:
		case o.again != nil: // it changed meanwhile
			o.again()
		case err != nil:
			o.again = func() { o.search(ctx, state, snap) }
		}
		o.mu.Unlock()
		o.topic.publish()
	}()
}

func (d *Details) diagnose(ctx context.Context, t progress.Target, pkg corev1alpha1.GenericPackage) (*diagnose.Diagnosis, error) {
	ctx, cancel := context.WithTimeout(ctx, pageDiagnosis)
	defer cancel()
	all, err := d.anyKind()
	if err != nil {
		return nil, err
	}
	return diagnose.PackageBy(ctx, d.cluster, all, t, pkg)
}

func (d *Details) anyKind() (client.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all != nil {
		return d.all, nil
	}
	all, err := d.cluster.AnyKind()
	if err == nil {
		d.all = all
	}
	return all, err
}

// revisionsOf are revisions, the newest first.
func revisionsOf(sets []corev1alpha1.GenericObjectSet, status *corev1alpha1.PackageStatus) []page.Revision {
	slices.SortFunc(sets, func(a, b corev1alpha1.GenericObjectSet) int {
		return cmp.Or(cmp.Compare(a.ObjectSetSpec().Revision, b.ObjectSetSpec().Revision), cmp.Compare(a.GetName(), b.GetName()))
	})
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
