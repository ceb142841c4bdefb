package applies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
	"lockstep.run/lockstep/test/require"
)

// process is the engine from one start to its end. The state in memory ends with it.
type process struct {
	*engine.Engine
	cache  *livestate.Cache
	claims *claims.Table
	stop   func()

	mu    sync.Mutex
	wakes map[objects.OwnerKey]chan struct{}
}

// newProcess returns a process that does not watch yet.
func newProcess(tb testing.TB, l *lab) *process {
	tb.Helper()
	p := &process{wakes: map[objects.OwnerKey]chan struct{}{}, claims: claims.NewTable(func(objects.Owner) {})}
	tracker := tracking.New(apinames.Default)
	tracker.Wake = p.wake
	asking, err := discovery.NewDiscoveryClientForConfig(l.config)
	require.NoError(tb, err)
	checker := schemas.NewCounted(asking.RESTClient(), nil)
	p.cache, err = livestate.New(livestate.Options{
		Names: apinames.Default, Config: l.config, Observe: tracker.Observe, Changed: tracker.Changed, Log: logr.Discard(),
		KindChanged: func(gk schema.GroupKind) { tracker.KindChanged(gk) },
	})
	require.NoError(tb, err)
	writer, err := apply.NewWriter(l.config, apinames.Default.FieldManager)
	require.NoError(tb, err)
	client, err := metadata.NewForConfig(l.config)
	require.NoError(tb, err)
	p.Engine = &engine.Engine{
		Cluster: &cluster.Connection{Cache: p.cache, Writer: writer, Checker: checker, Metadata: client},
		Tracker: tracker, Pool: engine.NewPool(16, 16),
	}
	return p
}

// start starts the watches, and waits until discovery has completed.
func (p *process) start(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.cache.Start(ctx)
	}()
	p.stop = func() {
		cancel()
		<-ended
	}
	harness.Eventually(tb, harness.Patience, "the kinds to be known", func(context.Context) error {
		_, err := p.cache.Mapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
		return err
	})
}

func (p *process) wake(owner objects.OwnerKey) {
	select {
	case p.woken(owner) <- struct{}{}:
	default:
	}
}

func (p *process) woken(owner objects.OwnerKey) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wakes[owner] == nil {
		p.wakes[owner] = make(chan struct{}, 1)
	}
	return p.wakes[owner]
}

// subject is the owner of one object, with the records that survive a process.
type subject struct {
	lab     *lab
	process *process
	owner   objects.Owner
	key     objects.Key
	scope   objectsets.Scope
	rollout *engine.Rollout
	sets    []*record // that are not archived
	noted   string    // about the object
}

// record is a set with the state that its status would record.
type record struct {
	set corev1alpha1.GenericObjectSet
	phases.Recorded
}

func newSubject(l *lab, name string, namespaced bool, gvk schema.GroupVersionKind, objectName string) *subject {
	s := &subject{
		lab:   l,
		owner: objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ClusterObjectDeployment", Name: name}, UID: types.UID(name)},
		key:   objects.Key{Group: gvk.Group, Kind: gvk.Kind, Name: objectName},
		scope: func(schema.GroupKind, string) (bool, bool) { return namespaced, true },
	}
	if namespaced {
		s.owner.Kind, s.owner.Namespace, s.key.Namespace = "ObjectDeployment", namespace, namespace
	}
	return s
}

// attach adds the subject to a process: to its first one, or to another one after a restart.
func (s *subject) attach(p *process) {
	s.process, s.rollout = p, engine.New(s.owner)
	s.rollout.Claims = p.claims
	for _, r := range s.sets {
		rev := s.load(r)
		if r.Succeeded {
			rev.RestorePhase(0, true)
		}
		s.rollout.Put(rev)
		s.rollout.RestoreClaim(rev, r.Started > 0)
	}
	p.Prepare(s.rollout)
}

func (s *subject) load(r *record) *engine.Revision {
	rev := objectsets.Load(r.set, objectsets.Stored{}, s.owner, s.scope)
	rev.Restore(r.Recorded)
	return rev
}

// want adds a revision with a template.
func (s *subject) want(template map[string]any) error {
	raw, err := json.Marshal(template)
	if err != nil {
		return err
	}
	object := corev1alpha1.ObjectSetObject{CollisionProtection: corev1alpha1.CollisionProtectionIfNoController}
	object.Object.Raw = raw
	number := int64(1)
	if len(s.sets) > 0 {
		number = s.sets[len(s.sets)-1].set.ObjectSetSpec().Revision + 1
	}
	spec := corev1alpha1.ObjectSetSpec{Revision: number}
	spec.Phases = []corev1alpha1.ObjectSetTemplatePhase{{Name: "deploy", Objects: []corev1alpha1.ObjectSetObject{object}}}
	set := metav1.ObjectMeta{
		Namespace: s.owner.Namespace, Name: fmt.Sprintf("%s-%d", s.owner.Name, number), UID: types.UID(fmt.Sprintf("%s-%d", s.owner.Name, number)),
	}
	r := &record{set: &corev1alpha1.ObjectSet{ObjectMeta: set, Spec: spec}}
	if s.owner.Namespace == "" {
		r.set = &corev1alpha1.ClusterObjectSet{ObjectMeta: set, Spec: spec}
	}
	s.sets = append(s.sets, r)
	s.rollout.Put(s.load(r))
	return nil
}

// result is how the current revision stands when nothing more happens.
type result struct {
	refused bool
	// said is every message about the object.
	said string
}

// settle takes steps until the subject is at rest, in a state of the object from resourceVersion
// on. With again, a refusal has to be repeated first.
func (s *subject) settle(ctx context.Context, resourceVersion string, again bool) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	current := s.sets[len(s.sets)-1]
	uid := current.set.GetUID()
	for {
		end := s.rollout.Start(time.Now, time.Second)
		out, err := s.process.Step(ctx, s.rollout, engine.Want{Current: uid, Store: records{s: s}})
		if err != nil {
			end()
			return result{}, fmt.Errorf("step: %w", err)
		}
		report, rev := s.rollout.Report(uid), s.rollout.Loaded(uid)
		found := reported(rev, report)
		more := false
		if !out.Again {
			more, err = s.process.Background(ctx, s.rollout, engine.Want{Current: uid, Store: records{s: s}})
		}
		end()
		switch {
		case err != nil:
			return result{}, err
		case out.Again || more:
			continue
		case s.behind(resourceVersion), s.collected(ctx):
		case report != nil && report.Unknown: // the watch is filling
		case found.refused && again:
			again = false
		case found.refused, rev.Succeeded() && report != nil && report.Complete():
			s.archive()
			found.said += "\n" + s.noted
			return found, nil
		}
		if err := s.await(ctx, out.RequeueAt); err != nil {
			return result{}, fmt.Errorf("it does not come to rest: %s: %w", found.said, err)
		}
	}
}

// patience is how long a subject has to come to rest.
const patience = 20 * time.Second

// await waits until the subject is woken or due.
func (s *subject) await(ctx context.Context, due time.Time) error {
	pause := 20 * time.Millisecond
	if !due.IsZero() {
		pause = max(time.Until(due), time.Millisecond)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-s.process.woken(s.owner.OwnerKey):
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// collected removes the finalizer of an object that was deleted in the foreground, as the garbage
// collector does.
func (s *subject) collected(ctx context.Context) bool {
	shown, found := s.process.Cluster.Observed(s.key)
	if !found || !shown.Terminating {
		return false
	}
	mapping, err := s.lab.mapping(schema.GroupVersionKind{Group: s.key.Group, Kind: s.key.Kind})
	if err != nil {
		return false
	}
	client := s.lab.dynamic.Resource(mapping.Resource).Namespace(s.key.Namespace)
	live, err := client.Get(ctx, s.key.Name, metav1.GetOptions{})
	if err != nil || !slices.Contains(live.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return false
	}
	live.SetFinalizers(slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerDeleteDependents }))
	_, err = client.Update(ctx, live, metav1.UpdateOptions{})
	return err == nil
}

// behind reports whether the watch does not show the object in a state yet.
func (s *subject) behind(resourceVersion string) bool {
	if resourceVersion == "" {
		return false
	}
	shown, found := s.process.Cluster.Observed(s.key)
	state := objects.Observed{ResourceVersion: resourceVersion}
	return !found || state.NewerThan(shown)
}

// reported sums up the messages about a revision.
func reported(rev *engine.Revision, report *phases.Report) result {
	found := result{refused: rev.Blocked() != "", said: rev.Blocked()}
	if report == nil {
		return found
	}
	for _, b := range report.Blocking {
		found.refused = found.refused || b.Kind == phases.BlockRefused || b.Kind == phases.BlockCollision
		found.said += b.Message + "\n"
	}
	for _, b := range report.Drifted {
		found.said += b.Message + "\n"
	}
	found.said = strings.TrimSpace(found.said)
	return found
}

// archive forgets the revisions before the current one, if that has succeeded.
func (s *subject) archive() {
	last := len(s.sets) - 1
	if !s.sets[last].Succeeded {
		return
	}
	for _, r := range s.sets[:last] {
		s.process.Drop(s.rollout, r.set.GetUID())
	}
	s.sets = s.sets[last:]
}

// records is the store of a subject. Methods that are not here are not called.
type records struct {
	engine.Store
	s *subject
}

func (r records) of(rev *engine.Revision) *record {
	for _, known := range r.s.sets {
		if known.set.GetUID() == rev.UID {
			return known
		}
	}
	panic("no set " + rev.Name)
}

func (r records) Claimed(_ context.Context, rev *engine.Revision) error {
	r.of(rev).Claimed, r.of(rev).Started = true, rev.Started()
	return nil
}

func (r records) Opened(_ context.Context, rev *engine.Revision) error {
	r.of(rev).Started = rev.Started()
	return nil
}

func (r records) Started(ctx context.Context, rev *engine.Revision) error { return r.Opened(ctx, rev) }

func (r records) SucceedsAt(context.Context, *engine.Revision) (time.Time, error) {
	return time.Time{}, nil
}

func (r records) Succeeded(_ context.Context, rev *engine.Revision) error {
	r.of(rev).Started, r.of(rev).Succeeded = rev.Started(), true
	return nil
}

func (r records) Noted(_ context.Context, notes map[objects.Key]string) error {
	r.s.noted = notes[r.s.key]
	return nil
}
