package hostedclusterpackages

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/environment"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
)

// Options are the parts that Setup connects.
type Options struct {
	// HostedClusters returns the hosted clusters by namespace and name, or why they are not known,
	// as [environment.Detector.HostedClusters].
	HostedClusters func() ([]environment.HostedCluster, error)
	// Fresh keeps the responses to writes of HostedClusterPackages and their Packages.
	Fresh *mutationcache.Store
	// Pace of writes that are sent again.
	Pace limits.Pace
}

// Reconciler reconciles HostedClusterPackages.
type Reconciler struct {
	Options
	// Client reads from the caches and writes; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	Now    func() time.Time

	queue  queueing.Queue[reconcile.Request]
	memory memory
}

// reconciliation is one reconcile of a HostedClusterPackage.
type reconciliation struct {
	*Reconciler
	view
	state    *state
	template *template
	// packages are the Packages of the owner's name, by namespace.
	packages map[string]*corev1alpha1.Package
	now      time.Time
	queueing.Outcome
}

// view is the snapshot of a HostedClusterPackage in one reconcile: the input of its
// decision and status.
type view struct {
	owner *corev1alpha1.HostedClusterPackage
	snapshot
	groups groups
	// problems are the reasons why Packages cannot be written, in the order of their namespaces.
	problems []problem
	// unknown is why the decision cannot be made; nil if it can.
	unknown error
	decision
}

// problem is why a Package cannot be written.
type problem struct {
	namespace, reason, message string
	// pending means that it ends without help.
	pending bool
}

// errSelector means that the selector cannot be used.
var errSelector = errors.New("spec.hostedClusterSelector is invalid")

// memory is the memory of HostedClusterPackages, by name. A restart can lose it: refused writes are
// then sent once more.
type memory struct {
	sync.Mutex
	states map[string]*state
}

// state is the memory of one; only its own reconcile uses it.
type state struct {
	uid      types.UID
	failures queueing.Failures
	// reported is when the status was written last.
	reported time.Time
	// refusals are by the namespaces of Packages.
	refusals map[string]*refusal
	// applied are digests of the Packages after an apply: values that the API server changes are
	// not applied again.
	applied map[types.UID]string
}

// refusal is a write of a Package that failed.
type refusal struct {
	// input identifies a write and the state that it was based on: with another input it
	// is sent at once.
	input   string
	message string
	// final means that the API server refuses the content; otherwise the write might have been
	// performed, or might be soon.
	final bool
	times int
	retry time.Time
}
