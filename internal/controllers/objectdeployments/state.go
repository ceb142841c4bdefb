package objectdeployments

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/foreign"
	"lockstep.run/lockstep/internal/controllers/objectdeployments/lanes"
	"lockstep.run/lockstep/internal/engine"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/phases/claims"
)

// Home is the cluster of our own kinds.
type Home struct {
	// Client writes, and reads from caches with the index of IndexSets. Reader reads from the API
	// server.
	Client client.Client
	Reader client.Reader
	// Events records transitions.
	Events events.EventRecorder
	// Owners watches foreign owners of deployments and lone sets; it can be nil.
	Owners *foreign.Owners
	Now    func() time.Time
	// Namespace is the manager's: it has the Secrets of cluster kinds.
	Namespace string
}

// Reconciler reconciles deployments and sets.
type Reconciler struct {
	Home
	// Here is the cluster of our own kinds as a target.
	Here *Target
	// Targets are other clusters; nil if they are not served.
	Targets Targets
	// Phases are ObjectSetPhases, which are owners, too; it can be nil.
	Phases Phases
	// Hooks are for simulations.
	Hooks Hooks

	*Queues
	enqueue func(objects.OwnerKey)
	// lanes reconcile the owners of other clusters; nil if these are reconciled along with others.
	lanes *lanes.Lanes
	// Fresh takes the answers to our writes.
	Fresh *mutationcache.Store
	// written are slices of deployments by the UID of their owner.
	written *mutationcache.Store
	// quota counts the memory of revisions; it can be nil.
	quota *quota.Memory
	memory
}

// Hooks show internal state to a simulation; nil functions are not called.
type Hooks struct {
	// Loaded is called with each revision that is loaded, before anything is decided.
	Loaded func(*engine.Revision)
	// Reconciled is called after a reconcile.
	Reconciled func(*engine.Rollout)
}

// Target is a cluster that objects are rolled out to.
type Target struct {
	*engine.Engine
	// ID and Home are the UIDs of the namespaces kube-system of the target and of the cluster of
	// our own kinds; empty if both are the same cluster.
	ID, Home types.UID
}

// namespaced is an objectsets.Scope. Both results are from one moment, because the kind can be
// removed between two calls.
func (t *Target) namespaced(gk schema.GroupKind, version string) (namespaced, known bool) {
	if t.Cluster == nil {
		return false, false
	}
	mapping, err := t.Cluster.Mapping(gk, version)
	if err != nil {
		return false, false
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// Targets are the connections to other clusters.
type Targets interface {
	// Use keeps a target connected for a user. wake is called when its state or session
	// changed, and must not block.
	Use(user string, ref targets.Ref, wake func())
	Release(user string)
	// Find returns the session of a target, nil if there is none, and its state.
	Find(ref targets.Ref) (*Target, targets.State)
}

// claimants are the owners that share a table of claims. In the cluster of our own kinds, whose UID
// is empty, all owners share one. In another cluster the owners of one namespace share one, and so
// do the cluster-scoped ones: the server alone reports which cluster it is, and what can be written
// there.
type claimants struct {
	cluster   types.UID
	namespace string
}

func claimantsOf(cluster types.UID, namespace string) claimants {
	if cluster == "" {
		namespace = ""
	}
	return claimants{cluster, namespace}
}

// memory is the memory of this process while it leads. After a restart, claims are restored and
// everything else is determined again.
type memory struct {
	mu     sync.Mutex
	owners map[objects.OwnerKey]*state
	claims map[claimants]*claims.Table
	// busy are the owners that are being reconciled, with the function that cancels that.
	busy sync.Map

	restoreMu    sync.Mutex
	restored     bool
	restoreSince time.Time // since when the restoration of claims fails
	// prefetched are slices that were listed for RestoreClaims: a few lists instead of a GET for
	// each. Slices never change.
	prefetched map[types.NamespacedName]corev1alpha1.GenericObjectSlice
}

// state is the memory of one owner, for its reconcile alone: while the owner exists, and
// its target has the same session.
type state struct {
	// Target is the cluster of the owner's objects, nil if it is not connected.
	*Target
	rollout *engine.Rollout
	// records are the records of the deployment and of its sets, by UID.
	records map[types.UID]*record
	// counted are the revisions whose memory is counted.
	counted []types.UID
	// retryValue is the last value of the retry annotation.
	retryValue string
	// listed means that the objects of restored revisions were listed, or were awaited for long.
	listed bool
	// background means that a deployment that is being deleted was not orphaned.
	background bool
	// attended is the time from which revisions of the deployment can progress; zero while they
	// cannot.
	attended time.Time
	// limited counts reconciles in a row that ended at limits.DeploymentPasses.
	limited int
	// stored are the contents of the slices of loaded revisions.
	stored objectsets.Stored
	// owned are the slices of loaded revisions of a deployment with their owners, by name.
	owned map[string]*metav1.PartialObjectMetadata
	// slicesDue is when unused slices that were too young are collected.
	slicesDue time.Time
	// collected means that this process has collected unused Secrets: an earlier one might have
	// ended before that.
	collected bool
	// collectionDue means that unused slices have to be looked for: a write that ends their use was
	// sent or tried, or a look has failed.
	collectionDue bool
	failures      queueing.Failures
	// unseen is the time from which objects wait for their watches to show the last writes; zero if
	// none does.
	unseen time.Time
	// overflowReported means that an event reported that no more Jobs are recorded.
	overflowReported bool
}

// record is the memory of the deployment, or of a set while it might own objects.
type record struct {
	// digest is the digest of the template of the deployment in a generation, or of the spec of a
	// set.
	digest     objects.Digest
	generation int64
	// reported is when the last status was written.
	reported time.Time
	// timeline is the set's timeline, as far as it is known. Times that are in no status yet are
	// written with the next one.
	timeline []corev1alpha1.PhaseTimes
	// missingReadAt is when the missing slices of the revision were read.
	missingReadAt time.Time
}

// of returns the record of the deployment or of a set.
func (st *state) of(uid types.UID) *record {
	if st.records[uid] == nil {
		st.records[uid] = &record{}
	}
	return st.records[uid]
}

// Phases are the ObjectSetPhases that are reconciled as lone sets with one phase.
type Phases interface {
	// Read reads one from the caches; nil if there is none.
	Read(ctx context.Context, key objects.OwnerKey) (Phase, error)
	// SetOf returns an ObjectSetPhase that was already read as a set.
	SetOf(phase corev1alpha1.GenericObjectSetPhase) Phase
	// Relate returns the owners that one takes objects over from, and the ones that it has handed
	// some over to; previous are the owners of the former.
	Relate(ctx context.Context, phase corev1alpha1.GenericObjectSetPhase) (of phases.Controllers, previous []types.UID, err error)
	// Keys returns the keys of a scope.
	Keys(ctx context.Context, scope corev1alpha1.Scope) ([]objects.OwnerKey, error)
}

// Phase is an ObjectSetPhase as a set.
type Phase interface {
	corev1alpha1.GenericObjectSet
	corev1alpha1.GenericObjectSetPhase
	// Object returns the object of the API server, and Flush puts the status of the set on it.
	Object() corev1alpha1.Conditioned
	Flush()
	// Held reports whether only the removal is written, and problem is the reason if a user has to
	// fix that.
	Held() (held bool, problem error)
	// ReportsDrift reports whether drift is left as it is.
	ReportsDrift() bool
}

// apiObject returns the object that the API server has.
func apiObject(obj corev1alpha1.Conditioned) corev1alpha1.Conditioned {
	if phase, is := obj.(Phase); is {
		return phase.Object()
	}
	return obj
}

// reconciliation is one reconcile of one owner.
type reconciliation struct {
	*Reconciler
	*state
	key   objects.OwnerKey
	scope corev1alpha1.Scope
	// deployment is nil if the owner is a lone set.
	deployment corev1alpha1.GenericObjectDeployment
	// phase is the ObjectSetPhase that is the owner, and the only set; otherwise it is nil.
	phase Phase
	// sets are all sets of the owner in ascending order of revision.
	sets []corev1alpha1.GenericObjectSet
	// former are sets of a deployment of this name that no longer exists.
	former []corev1alpha1.GenericObjectSet
	// ref is the target; nil for the cluster of our own kinds. away is why the target cannot be
	// used, nil if it is connected.
	ref  *corev1alpha1.TargetReference
	away *targets.State
	// current is the set in charge; nil if there is none.
	current corev1alpha1.GenericObjectSet
	// awaited means that the template alone does not put a set in charge, and wanted is the set
	// with its content then.
	awaited bool
	wanted  corev1alpha1.GenericObjectSet
	// rollbackHeld is why a rollback that is due is not possible.
	rollbackHeld string
	// ownerProblem is why a foreign owner cannot be watched.
	ownerProblem string
	queueing.Outcome
}

// top returns the owner object.
func (s *reconciliation) top() corev1alpha1.Conditioned {
	if s.deployment != nil {
		return s.deployment
	}
	return s.sets[0]
}

// secretNamespace returns the namespace of the owner's Secrets.
func (s *reconciliation) secretNamespace() string {
	return cmp.Or(s.key.Namespace, s.Namespace)
}

func (s *reconciliation) setOfUID(uid types.UID) corev1alpha1.GenericObjectSet {
	i := slices.IndexFunc(s.sets, func(set corev1alpha1.GenericObjectSet) bool { return set.GetUID() == uid })
	if i < 0 {
		return nil
	}
	return s.sets[i]
}

// revisionOf returns the loaded revision of a set, or nil.
func (s *reconciliation) revisionOf(set corev1alpha1.GenericObjectSet) *engine.Revision {
	return s.rollout.Loaded(set.GetUID())
}

// remote reports whether the objects of the deployment are in another cluster. If a deployment was
// restored from a backup with another UID, no garbage collector there removes the objects of the
// former one. The former sets have the record of them until the successor has succeeded, and are
// deleted with the successor if that is deleted before.
func (s *reconciliation) remote() bool {
	return s.deployment != nil && s.deployment.ObjectDeploymentSpec().Template.Spec.TargetRef != nil
}

// requeueAt requeues the owner at a time; zero for never.
func (s *reconciliation) requeueAt(at time.Time) {
	if !at.IsZero() {
		s.Requeue(at.Sub(s.Now()))
	}
}

// succeeded reports whether the rollout of a set has succeeded once.
func succeeded(set corev1alpha1.GenericObjectSet) bool {
	return meta.IsStatusConditionTrue(*set.StatusConditions(), corev1alpha1.ConditionSucceeded)
}

func lifecycle(set corev1alpha1.GenericObjectSet) corev1alpha1.ObjectSetLifecycleState {
	return set.ObjectSetSpec().LifecycleState
}
