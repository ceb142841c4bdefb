package cluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/objects"
)

// Cluster is one cluster: all requests of the engine about managed objects, and all observations of
// them. It reads with one identity, the manager's. Each write names its own identity. It is safe
// for concurrent use.
//
// Implementations: [Connection] for an API server, package dryrun of the command line for the
// predicted cluster, package memory for simulations with faults.
type Cluster interface {
	Reads
	LiveState
	// As returns writes as an account. The account needs the rights for them; the manager's own
	// rights do not help. The zero account is the manager itself.
	As(account objects.Account) Writes
	// Mapping returns the mapping of a kind in a version, without a request. An empty version
	// means the preferred one. The error is a NoKindMatchError if the kind is not served.
	Mapping(gk schema.GroupKind, version string) (*meta.RESTMapping, error)
	// Check validates objects against the served schemas. The errors are parallel to the objects.
	Check(ctx context.Context, objs []*unstructured.Unstructured) []error
	// Now is the time.
	Now() time.Time
}

// Reads are requests for single objects, and for the metadata of many. Errors are
// classified by [apply.Classify]. A namespace is empty for cluster-scoped kinds.
type Reads interface {
	Get(ctx context.Context, m *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error)
	GetMetadata(ctx context.Context, m *meta.RESTMapping, namespace, name string) (*metav1.PartialObjectMetadata, error)
	ListMetadata(ctx context.Context, m *meta.RESTMapping, namespace string, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
}

// Writes are requests that change single objects, and dry runs of them, as one account.
// Errors and namespaces are as in [Reads].
type Writes interface {
	// Create sends a POST, Apply a server-side apply, and Patch a JSON patch (RFC 6902). They
	// return the resulting object, which a dry run does not store.
	Create(ctx context.Context, m *meta.RESTMapping, namespace, name string, body []byte, dryRun bool) (*unstructured.Unstructured, error)
	Apply(ctx context.Context, r apply.ApplyRequest) (*unstructured.Unstructured, error)
	Patch(ctx context.Context, m *meta.RESTMapping, namespace, name string, jsonPatch []byte, dryRun bool) (*unstructured.Unstructured, error)
	// Delete deletes the object in this state, and returns it if it is terminating.
	Delete(
		ctx context.Context, m *meta.RESTMapping, namespace, name string,
		uid types.UID, resourceVersion string, policy metav1.DeletionPropagation,
	) (gone bool, live *unstructured.Unstructured, err error)
}

// LiveState has the records of watches; see package livestate.
type LiveState interface {
	// Use replaces the kinds that a user needs to be watched.
	Use(user string, kinds []schema.GroupKind)
	// State returns the state of a kind as a whole.
	State(gk schema.GroupKind) livestate.KindState
	// Observed returns the record of an object; false if the watch shows no such object.
	Observed(key objects.Key) (*objects.Observed, bool)
	// Passed reports whether the records of a kind are from a resource version or later.
	Passed(gk schema.GroupKind, resourceVersion string) bool
	// Relist observes every object of a kind again, up to KindState.Listing.
	Relist(gk schema.GroupKind) int64
	// Remember keeps the record of a response, and Gone records a deletion, until the watch shows a
	// newer state.
	Remember(key objects.Key, obs *objects.Observed)
	Gone(key objects.Key, uid types.UID)
	// Confirm reports whether objects still have the given resource versions. The selector should
	// match all of them.
	Confirm(ctx context.Context, seen map[objects.Key]string, labelSelector string) (bool, error)
}
