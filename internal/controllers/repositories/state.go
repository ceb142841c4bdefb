package repositories

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/background"
	"lockstep.run/lockstep/internal/kube/mutationcache"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

// Options are the parts that Setup connects.
type Options struct {
	Pipeline *Pipeline
	// Sources watches only the objects that repositories name.
	Sources *sources.Watches
	// Fresh keeps the responses to writes of repositories and of AvailablePackages.
	Fresh *mutationcache.Store
	// Policies returns the policies of images. Its error is imageconfigs.ErrNotRead until they were
	// first read, or the reason why they cannot be read. It is nil if there are no policies.
	Policies func() (*imagepolicy.Set, error)
	// Namespace of the manager has the objects that ClusterPackageRepositories name.
	Namespace string
	// Pace of fetches and repairs.
	Pace limits.Pace
}

// Reconciler reconciles the repositories of a namespace, or of the cluster.
type Reconciler struct {
	Options
	// Client reads from the caches and writes; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	Now    func() time.Time

	queue   queueing.Queue[reconcile.Request]
	enqueue func(namespace string)
	memory  memory
	// life ends with the leadership of this process, and background work with it.
	life   context.Context
	hosts  queueing.Keyed
	fetch  func(context.Context, job) (*result, error)
	jitter func() float64
}

// reconciliation is one reconcile of a catalogue.
type reconciliation struct {
	*Reconciler
	*catalogue
	namespace string
	views     []*view
	available available
	now       time.Time
	queueing.Outcome
}

// view is the snapshot of one repository in one reconcile: the input of its decision and status.
type view struct {
	repository corev1alpha1.GenericPackageRepository
	input      input
	// image is the decision of the policies about the image of the source.
	image imagepolicy.Decision
	// verification is the verification of the last success of this process; nil if there is none.
	verification *verification
	// waiting means that the versions of Secrets and ConfigMaps will be known in a moment,
	// inputError why they are not known for longer.
	waiting    bool
	inputError string
	last       *success
	attempt    *attempt
	// fetchStarted is when the last fetch started.
	fetchStarted time.Time
	now          time.Time
	pace         limits.Pace
	outcome
}

// outcome is the result of a reconcile for one repository, which its status reports.
type outcome struct {
	step step
	// published is set if the content of the attempt was published by this reconcile.
	published *result
	// conflicts are the versions that are not published as the repository has them; nil if that is
	// unknown.
	conflicts []string
	writeErr  error
	// withheld: fetched content is not offered, since policies no longer trust it.
	withheld bool
}

// step is the one thing that a reconcile does for a repository.
type step int

const (
	stepRest    step = iota // the content is published
	stepPaused              // no fetch while the repository is paused
	stepFetch               // start to fetch
	stepWait                // a fetch is in progress, or the next one is due in a moment
	stepBackOff             // a failed fetch is repeated later, or never
	stepPublish             // publish the fetched content
	stepGather              // what the source names is not known yet
)

// memory is the memory of this process. After a restart, each repository gets at most one more
// conditional fetch.
type memory struct {
	background.Attempts[input, download]
	// account counts the offers of repositories; it can be nil.
	account    *quota.Memory
	catalogues map[string]*catalogue
}

// catalogue is the memory of the repositories of a namespace, or of the cluster. Its
// reconcile alone has it, except for the attempts, which are above the lock of memory.
type catalogue struct {
	states map[string]*state
	// pending are packages whose offers changed since they were published.
	pending map[string]struct{}
	// published are the parts by their names, in their last written or observed state.
	published map[string]published
	// conflicts by package and repository.
	conflicts map[string]map[string][]string
	repaired  time.Time
}

// published is the digest of a written part, to notice changes by other clients.
type published struct{ packageName, digest string }

// state is the memory of one repository.
type state struct {
	uid types.UID
	// last is the last success, also of an earlier process; nil if there is none.
	last *success
	// content is its content; nil if no fetch of this process returned any.
	content  *packed
	priority int32
	limited  bool
	// attempt is the last attempt of this process, unless it was published. It is replaced under
	// the lock of memory.
	attempt *attempt
	// fetchStarted is when the last fetch started.
	fetchStarted time.Time
	// unreported is published, and no status has it yet.
	unreported *result
	// verification is the verification of the last success of this process; nil if there is none.
	verification *verification
	// withheld: fetched content is not offered while policies do not trust it.
	withheld bool
	// source identifies the source of a generation.
	source     string
	generation int64
}

// success is a fetch whose content is published.
type success struct {
	// input identifies the fetched content; of an earlier process, the source alone is known.
	input input
	// restored is set if the success belongs to an earlier process.
	restored   bool
	validator  string
	retryValue string
	at         time.Time
	jitter     float64
	// incomplete is set if not all offers of the repository are published, and its content is not
	// in memory.
	incomplete bool
}

// input identifies content to fetch: policy covers all policies about its image, and keys are the
// keys that verify it.
type input struct{ source, versions, policy, keys string }

// verification is the result of verifying an image, with the validator of that image.
type verification struct {
	outcome   *imagepolicy.Outcome
	validator string
}

// attempt is the last fetch of a repository.
type attempt = background.Attempt[input, download]

// download is the result of a fetch.
type download struct {
	result *result
	// rejected is the error of a content that cannot be used: from this attempt if it has ended,
	// otherwise from the one before.
	rejected *contentError
}

// catalogueOf returns the catalogue of a namespace, and whether it was known before.
func (r *Reconciler) catalogueOf(namespace string) (c *catalogue, known bool) {
	r.memory.Lock()
	defer r.memory.Unlock()
	if c = r.memory.catalogues[namespace]; c != nil {
		return c, true
	}

	c = &catalogue{
		states: map[string]*state{}, pending: map[string]struct{}{},
		published: map[string]published{}, conflicts: map[string]map[string][]string{},
	}

	if r.memory.catalogues == nil {
		r.memory.catalogues = map[string]*catalogue{}
	}

	r.memory.catalogues[namespace] = c
	return c, false
}

// drop forgets a namespace without repositories.
func (r *Reconciler) drop(namespace string) {
	r.memory.Lock()
	defer r.memory.Unlock()
	delete(r.memory.catalogues, namespace)
}
