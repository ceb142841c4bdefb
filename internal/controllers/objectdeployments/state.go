package objectdeployments

import (
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
	// Client reads from caches, in which IndexSets has indexed the sets, and writes.
	// Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// Events records transitions.
	Events events.EventRecorder
	// Owners watches foreign owners of deployments and lone sets; nil for none.
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
	// Targets are other clusters; nil where they are not served.
	Targets Targets
	// Phases are ObjectSetPhases, which are owners, too; nil for none.
	Phases Phases
	// Hooks are for simulations.
	Hooks Hooks

	*Queues
	enqueue func(objects.OwnerKey)
	// lanes reconcile the owners of other clusters; nil where that is not apart from others.
	lanes *lanes.Lanes
	// Fresh takes the answers to our writes.
	Fresh *mutationcache.Store
	// written are slices of deployments by the UID of their owner.
	written *mutationcache.Store
	// quota counts the memory that revisions take; it may be nil.
	quota *quota.Memory
	memory
}

// Hooks show what a simulation cannot see from outside; nil functions are not called.
type Hooks struct {
	// Loaded is called with each revision that is loaded, before anything is decided.
	Loaded func(*engine.Revision)
	// Reconciled is called after a reconcile.
	Reconciled func(*engine.Rollout)
}

// Target is a cluster that objects are rolled out to.
type Target struct {
	*engine.Engine
	// Cluster and home are the UIDs of the namespaces kube-system of the target and of
	// the cluster of our own kinds, where these are different ones; else they are empty.
	ID, Home types.UID
}

// namespaced is an objectsets.Scope. Both results are of one moment: the kind may be
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
	// Find returns the session of a target, nil where there is none, and its state.
	Find(ref targets.Ref) (*Target, targets.State)
}

// claimants are the owners that share a table of claims. In the cluster of our own kinds,
// whose UID is empty, that is all of them. In another one it is those of one namespace, or
// the cluster-scoped ones: only the server that answers says which cluster it is, and what
// may be written there.
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

// prefetchedSlices were listed at the start, until their sets are loaded: a
// few lists instead of a GET for each. Slices never change; others are
// read by GET.
type prefetchedSlices map[types.NamespacedName]corev1alpha1.GenericObjectSlice

// memory is what this process remembers while it leads. After a restart claims are restored, and all else is found out again.
type memory struct {
	mu     sync.Mutex
	owners map[objects.OwnerKey]*state
	claims map[claimants]*claims.Table
	// busy are the owners that are reconciled, with what cancels that.
	busy sync.Map

	restoreMu    sync.Mutex
	restored     bool
	restoreSince time.Time // since when the restoration of claims fails
	// prefetched is set during RestoreClaims.
	prefetched prefetchedSlices
}

// state is the memory of one owner, for its reconcile alone: while the owner exists, and
// its target has the same session.
type state struct {
	// Target is where the objects of the owner are, nil where that is not connected.
	*Target
	rollout *engine.Rollout
	// records are those of the deployment and of its sets, by UID.
	records map[types.UID]*record
	// counted are the revisions whose memory is counted.
	counted []types.UID
	// retryValue is the last value of the retry annotation.
	retryValue string
	// background means that a deployment that is being deleted was not orphaned.
	background bool
	// attended is since when revisions of the deployment can progress; zero while they cannot.
	attended time.Time
	// limited counts reconciles in a row that ended at limits.DeploymentPasses.
	limited int
	storage
	problems
}

// record is the memory of the deployment, or of a set while it may own objects.
type record struct {
	// digest is that of the template of the deployment in a generation, or of the spec of a set.
	digest     objects.Digest
	generation int64
	// reported is when the last status was written.
	reported time.Time
	// timeline is that of a set, as far as it is known: what of it no status has yet is written with the next one.
	timeline []corev1alpha1.PhaseTimes
	// missingReadAt is when the missing slices of the revision were read.
	missingReadAt time.Time
}

// storage has the known slices of revisions.
type storage struct {
	// stored are the contents of the slices of loaded revisions.
	stored objectsets.Stored
	// owned are the slices of loaded revisions of a deployment with their owners, by name.
	owned map[string]*metav1.PartialObjectMetadata
	// slicesDue is when unused slices that were too young are collected.
	slicesDue time.Time
	// collected means that this process has collected unused Secrets: an earlier one may
	// have ended before that.
	collected bool
	// collectionDue means that a look for unused slices is due: what takes uses away was
	// written or tried, or a look has failed.
	collectionDue bool
}

// problems are since when something is not as it should be, which is reported once it lasts.
type problems struct {
	failures queueing.Failures
	// unseen is since when objects wait for their watches to show the last writes; zero
	// where none does.
	unseen time.Time
	// overflowReported means that an event reported that no more Jobs are recorded.
	overflowReported bool
}

// of returns the record of the deployment or of a set.
func (st *state) of(uid types.UID) *record {
	if st.records[uid] == nil {
		st.records[uid] = &record{}
	}
	return st.records[uid]
}

// Phases are the ObjectSetPhases that are reconciled as sets of one phase that stand alone.
type Phases interface {
	// Read reads one from the caches; nil where there is none.
	Read(ctx context.Context, key objects.OwnerKey) (Phase, error)
	// SetOf returns one that was read as a set.
	SetOf(phase corev1alpha1.GenericObjectSetPhase) Phase
	// Relate returns whose objects one takes over, and to whom it has handed some over; previous are the owners of the former.
	Relate(ctx context.Context, phase corev1alpha1.GenericObjectSetPhase) (of phases.Controllers, previous []types.UID, err error)
	// Keys returns those of a scope.
	Keys(ctx context.Context, scope corev1alpha1.Scope) ([]objects.OwnerKey, error)
}

// Phase is an ObjectSetPhase as a set.
type Phase interface {
	corev1alpha1.GenericObjectSet
	corev1alpha1.GenericObjectSetPhase
	// Object returns what the API server has, and Flush puts the status of the set on it.
	Object() corev1alpha1.Conditioned
	Flush()
	// Held reports whether nothing is written beside the removal, and why a user has to mend that.
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
	// deployment is nil where the owner is a set that stands alone.
	deployment corev1alpha1.GenericObjectDeployment
	// phase is the ObjectSetPhase that is the owner, which is the one set; else it is nil.
	phase Phase
	// sets are all sets of the owner in ascending order of revision.
	sets []corev1alpha1.GenericObjectSet
	// former are sets of a deployment of this name that is gone.
	former []corev1alpha1.GenericObjectSet
	// ref is the target; nil for the cluster of our own kinds. away is why nothing can be
	// done there, nil where it is connected.
	ref  *corev1alpha1.TargetReference
	away *targets.State
	// current is the set in charge; nil where there is none.
	current corev1alpha1.GenericObjectSet
	// awaited means that the template alone brings no set into charge, and wanted is the
	// set that it stands for then.
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

// secretNamespace is where the Secrets of the owner are.
func (s *reconciliation) secretNamespace() string {
	if s.key.Namespace == "" {
		return s.Namespace
	}
	return s.key.Namespace
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

// remote reports whether the objects of the deployment are in another cluster. There no
// garbage collector removes what a deployment of this name has left that was restored
// from a backup with another UID: its sets have the record of that, until the successor
// has succeeded, and are deleted with the successor where that is deleted before.
func (s *reconciliation) remote() bool {
	return s.deployment != nil && s.deployment.ObjectDeploymentSpec().Template.Spec.TargetRef != nil
}

// requeueAt requeues the owner at a time; zero for never.
func (s *reconciliation) requeueAt(at time.Time) {
	if !at.IsZero() {
		s.Requeue(at.Sub(s.Now()))
	}
}

func lifecycle(set corev1alpha1.GenericObjectSet) corev1alpha1.ObjectSetLifecycleState {
	return set.ObjectSetSpec().LifecycleState
}
