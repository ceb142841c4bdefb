package dryrun

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
)

// Cluster is the cluster to plan for. No object in it is written.
type Cluster struct {
	// Reader reads the kinds of this project, and Secrets. All other fields are about the cluster
	// that holds the objects.
	Reader client.Reader

	// ID and Home are the UIDs of the namespace kube-system in the cluster that holds the objects
	// and in Reader's. They are empty if both are the same cluster.
	ID, Home types.UID
	// Writer sends reads and dry runs of any kind.
	Writer *apply.Writer
	// Metadata lists objects of any kind by their metadata.
	Metadata metadata.Interface

	// Discovery lists the kinds that the API server serves.
	Discovery *discovery.DiscoveryClient
	// Mapper knows the currently served kinds.
	Mapper meta.RESTMapper
	// Schemas validates objects that a phase creates.
	Schemas *schemas.Checker
}

// Connect creates the clients, and discovers the served kinds. If the objects are in another
// cluster, config is its configuration and the caller sets ID and Home.
func Connect(config *rest.Config, reader client.Reader) (*Cluster, error) {
	// The configuration is copied, because the caller uses its own one with other limits.
	config = rest.CopyConfig(config)
	// Requests are sent one after the other, so a limit per second would only slow the plan down.
	config.QPS, config.RateLimiter = -1, nil
	// Warnings of webhooks might repeat a Secret.
	config.WarningHandler = rest.NoWarnings{}
	c := &Cluster{Reader: reader}
	var err error
	if c.Writer, err = apply.NewWriter(config, apinames.Default.FieldManager); err != nil {
		return nil, err
	}

	if c.Metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}

	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}

	c.Discovery = disco
	c.Mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	// One mapping makes the client read discovery now, so that a broken connection fails here.
	if _, err := c.Mapper.RESTMapping(schema.GroupKind{Kind: "Namespace"}); err != nil {
		return nil, fmt.Errorf("read the kinds that the API server serves: %w", err)
	}
	c.Schemas = schemas.New(disco.RESTClient())

	return c, nil
}

// remote reports whether the objects are in another cluster.
func (c *Cluster) remote() bool { return c.ID != "" }

// namespaced reports whether a kind has namespaces, and whether the API server serves it in this
// version.
func (c *Cluster) namespaced(gk schema.GroupKind, version string) (namespaced, known bool) {
	m, err := c.Mapper.RESTMapping(gk, version)
	return err == nil && m.Scope.Name() == meta.RESTScopeNameNamespace, err == nil
}

// readOne reads one object in the version of its template, or else in a served one. It returns nil
// for an absent object.
func (c *Cluster) readOne(ctx context.Context, key objects.Key, version string) (*unstructured.Unstructured, error) {
	m, err := c.Mapper.RESTMapping(key.GroupKind(), version)
	if meta.IsNoMatchError(err) {
		// Another version of the same kind suffices to see that an object exists.
		m, err = c.Mapper.RESTMapping(key.GroupKind())
	}
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	live, err := c.Writer.Get(ctx, m, key.Namespace, key.Name)
	if apply.IsAbsent(err) {
		return nil, nil
	}
	return live, err
}

// unverifiable returns the reason why an error of a dry run is not about the write itself; empty if
// it is.
func unverifiable(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	s := status.Status()
	switch {
	// The message is the API server's own. Webhooks refuse with the same code and other texts.
	case s.Code == http.StatusForbidden && strings.Contains(s.Message, "User \"") && strings.Contains(s.Message, "cannot "):
		return "you may not write it: " + s.Message
	case s.Code == http.StatusForbidden && strings.Contains(s.Message, "is attempting to grant RBAC permissions not currently held"):
		return "you may not grant all of its rights, but the engine may"
	case strings.Contains(s.Message, "does not support dry run"):
		return "a webhook does not support dry runs: " + s.Message
	}

	switch apply.Classify(err) {
	case apply.StaleFields:
		return "its managedFields name a version that is no longer served; the engine corrects that first"
	case apply.NotServed:
		return "its API is not served yet"
	}

	return ""
}
