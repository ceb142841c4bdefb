package packages

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/controllers/packages/dependencies"
	"lockstep.run/lockstep/internal/controllers/packages/deployment"
	"lockstep.run/lockstep/internal/controllers/packages/load"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/inputs/targets"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/permissions"
	"lockstep.run/lockstep/internal/resolver"
)

// Reconciler reconciles Packages and ClusterPackages.
type Reconciler struct {
	Options
	// Client reads from the caches and writes; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	Now    func() time.Time

	queue   queueing.Queue[reconcile.Request]
	enqueue func(types.NamespacedName)
	memory  memory
	// identity names this process in records of loads.
	identity  string
	loads     *load.Loads
	catalogue *choice.Catalogue
	followers *choice.Followers
	ledger    *dependencies.Ledger
	// resolutions and releases admit one Package of each namespace at a time, and one
	// ClusterPackage.
	resolutions, releases *queueing.Requests[types.NamespacedName]
	// computing limits the resolutions that compute at a time to all processors but one, which is
	// left for work that waits for the network.
	computing *queueing.Semaphore
}

// reconciliation is one reconcile of a package. The view is filled in by its phases one after
// another.
type reconciliation struct {
	*Reconciler
	state *state
	view
	queueing.Outcome
	// waits is the queue that reconciles it again; nil if it is in none.
	waits *queueing.Requests[types.NamespacedName]
}

// view is the snapshot of one Package in one reconcile: the input of its decision and status.
type view struct {
	pkg corev1alpha1.GenericPackage
	// dep is the deployment with the Package's name, of any owner, or nil.
	dep         corev1alpha1.GenericObjectDeployment
	choice      choice.Choice
	fingerprint load.Fingerprint
	inputs
	// attempt is the last attempt of this process to load, of any fingerprint, or nil.
	attempt *load.Attempt
	// process identifies this process in records of loads.
	process string
	// drifted reports whether the template of the deployment differs from the one made for the
	// Package.
	drifted  bool
	repaired time.Time
	now      time.Time
	pace     limits.Pace
	// forbidden is why the manager does not install the package as it is; empty if it does.
	forbidden string
	// required is nil if there are no dependencies, or if they are unknown.
	required *dependencies.Plan
	// refused is the reason why required rights are not granted; zero if all are.
	refused conditions.State
	// heldBy are the instances that the teardown of the Package waits for.
	heldBy []resolver.Instance
	outcome
}

// outcome is the result of a reconcile, which the status reports.
type outcome struct {
	step    step
	why     string
	content *load.Content
	// deployed reports whether the deployment has the loaded template.
	deployed bool
	writeErr error
}

// step is the one thing that a reconcile does.
type step int

const (
	stepSync   step = iota // the unpacked content is current; settings that need no rendering are copied
	stepPaused             // the spec is not unpacked while the Package is paused
	stepLoad               // start to load
	stepWait               // a load is in progress, or a failed one is retried later
	stepDeploy             // write the loaded content
	stepRefuse             // the package is wrong and stays so
	stepYield              // the deployment of this name has another owner
	stepForbid             // the manager does not install the package as it is
	stepAwait              // the deployment of this name is terminating
	stepHold               // packageRef has no version that can be loaded; the installed content stays
	stepPermit             // the loaded content requires rights that are not granted
	stepDepend             // the loaded content is not deployed before its dependencies are available
	stepGather             // what the package is rendered from is not known yet
)

// inputs are the facts outside of the package that a load depends on.
type inputs struct {
	environment manifestsv1alpha1.PackageEnvironment
	// waiting means that inputs will be known in a moment. inputError is the reason if they stay
	// unknown for longer, and inputReason is the condition's reason if a user has to fix it;
	// otherwise it is empty.
	waiting                 bool
	inputError, inputReason string
	// sourceVersions are the versions of the Secrets and ConfigMaps that the spec names.
	sourceVersions map[string]string
	// newDigest is the present digest of the tag, if it moved; lookupError is the reason if that is
	// unknown.
	newDigest, lookupError string
	// dependencies are the pull secrets of a failed attempt; empty while they are not known.
	dependencies string
	// retryNumber counts the retries that other Packages gave rise to.
	retryNumber int
	// policies decide which images are trusted, and where they are pulled from.
	policies *imagepolicy.Set
	// targetState is the state of the target of a Package with a targetRef, otherwise nil; target
	// is nil if it is not connected.
	targetState *targets.State
	target      *Target
}

// Environment is the cluster as packages see it.
type Environment interface {
	// For returns the environment in a namespace, or of a ClusterPackage. If waiting, it is known
	// in a moment.
	For(namespace string) (env manifestsv1alpha1.PackageEnvironment, waiting bool, err error)
}

// Target is a cluster that packages are installed in.
type Target struct {
	// ID is the UID of its namespace kube-system.
	ID          types.UID
	Environment Environment
	// Namespaced reports whether a kind is namespaced, as far as the cluster is known.
	Namespaced func(schema.GroupKind) (namespaced, known bool)
	// ServedAPI reports whether an API is served, and which of its field paths are missing.
	ServedAPI resolver.Served
}

// Targets are the connections to other clusters.
type Targets interface {
	// Use keeps a target connected for a user. wake is called when its state, session or
	// environment changed, and must not block.
	Use(user string, ref targets.Ref, wake func())
	Release(user string)
	// Find returns the session of a target, nil if there is none, and its state.
	Find(ref targets.Ref) (*Target, targets.State)
}

// Options are the parts that Setup connects.
type Options struct {
	Pipeline    *load.Pipeline
	Environment Environment
	// Policies returns the policies of images. Its error is imageconfigs.ErrNotRead until they were
	// first read, or the reason why they cannot be read. It is nil if there are no policies.
	Policies func() (*imagepolicy.Set, error)
	Sources  *sources.Watches
	// Targets are other clusters; nil if they are not served.
	Targets Targets
	// Unserved reports whether a kind is certainly not served.
	Unserved func(schema.GroupKind) bool
	// ServedAPI reports whether an API is served, and which of its field paths are missing.
	ServedAPI resolver.Served
	// Underway returns how many deployments and ObjectSetPhases are reconciled or wait for that, in
	// all and of a namespace.
	Underway func(namespace string) (all, own int)
	// Fresh keeps the responses to writes of Packages and deployments.
	Fresh *mutationcache.Store
	// Slices keeps the slices that were written, for the controller of deployments.
	Slices *mutationcache.Store
	// Overrides identify settings of the manager that affect rendering. A change renders all
	// packages again.
	Overrides string
	// Version of the manager's release, which packages can restrict. Empty for a development build,
	// which satisfies every range.
	Version string
	// Accounts is which ServiceAccounts Packages are installed with.
	Accounts Accounts
	// Ceiling returns the most that packages are granted.
	Ceiling func() permissions.Ceiling
	// Namespace of the manager has the Secrets and ConfigMaps that ClusterPackages name, and their
	// own Secrets.
	Namespace string
	// Pace of resolutions and repairs.
	Pace limits.Pace
	// Loaded is called after each load of a package if it is not nil.
	Loaded func(took time.Duration, err error)
}

// memory is the memory of this process about Packages. After a restart, a failed load, a resolution
// or a repair is repeated at most.
type memory struct {
	sync.Mutex
	states map[types.NamespacedName]*state
}

// state is the memory of one Package, used only by its reconcile.
type state struct {
	uid types.UID
	// seen is when this process saw the Package first.
	seen time.Time
	// When the status was written, the deployment repaired, and last observed to be deleted.
	reported, repaired, terminating time.Time
	template                        deployment.Template
	hashKey                         []byte
	// chosenBy are the names that the choice of a version was resolved by.
	chosenBy []string
	failures queueing.Failures
	load     *load.Package
	choice   choice.Memory
}

// patch sends the differences from before in one merge patch with an optimistic lock.
func (r *Reconciler) patch(ctx context.Context, before, obj client.Object) error {
	return r.Fresh.Patch(ctx, r.Client, before, obj)
}

// namespaceOf returns the namespace of the objects that the spec names: for a ClusterPackage the
// manager's.
func (r *Reconciler) namespaceOf(pkg corev1alpha1.GenericPackage) string {
	return cmp.Or(pkg.GetNamespace(), r.Namespace)
}

func copyOf[T client.Object](obj T) T { return obj.DeepCopyObject().(T) }

func keyOf(obj client.Object) types.NamespacedName { return client.ObjectKeyFromObject(obj) }

// stateOf returns the memory of a Package, without the memory of a former Package of the same name.
func (r *Reconciler) stateOf(pkg corev1alpha1.GenericPackage) *state {
	key, m := keyOf(pkg), &r.memory
	m.Lock()
	st := m.states[key]
	m.Unlock()
	if st != nil && st.uid == pkg.GetUID() {
		return st
	}

	r.forget(key)
	st = &state{uid: pkg.GetUID(), seen: r.Now(), load: r.loads.Meet(pkg)}
	m.Lock()
	defer m.Unlock()
	if m.states == nil {
		m.states = map[types.NamespacedName]*state{}
	}

	m.states[key] = st
	return st
}

// forget drops everything that is kept for a package that no longer exists: its watches, its
// target, its loads and its place in the ledger.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.memory.Lock()
	st := r.memory.states[key]
	delete(r.memory.states, key)
	r.memory.Unlock()
	r.ledger.Drop(key)
	if st == nil {
		return
	}

	r.Sources.Use(key, nil)
	if r.Targets != nil {
		r.Targets.Release(userOf(key))
	}

	r.Fresh.Forget(string(st.uid))
	r.loads.Forget(key)
}

// remembered returns the catalogue's memory of a Package; nil if the Package is not reconciled.
func (r *Reconciler) remembered(pkg corev1alpha1.GenericPackage) *choice.Memory {
	r.memory.Lock()
	defer r.memory.Unlock()
	if st := r.memory.states[keyOf(pkg)]; st != nil && st.uid == pkg.GetUID() {
		return &st.choice
	}
	return nil
}
