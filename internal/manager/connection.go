package manager

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/engine/tracking"
	"lockstep.run/lockstep/internal/objects/apinames"
)

const (
	schemaPublished     = 3 * time.Second // until the schema of a new kind is published, at the latest
	schemaFieldsTimeout = 5 * time.Second // for the schema of one kind that a dependency needs fields of
)

// servedAPI reports whether a cluster serves an API, and which fields its schema lacks. If the
// schema cannot be read in time, all fields are missing, and unread is called.
func servedAPI(
	in *connection, timeout time.Duration, unread func(schema.GroupKind, *corev1alpha1.DependencyAPI, error),
) func(*corev1alpha1.DependencyAPI) (bool, []string) {
	return func(api *corev1alpha1.DependencyAPI) (served bool, missing []string) {
		gv, err := schema.ParseGroupVersion(api.APIVersion)
		if err != nil {
			return false, nil
		}
		gvk := gv.WithKind(api.Kind)
		if _, err = in.Mapping(gvk.GroupKind(), gv.Version); err != nil {
			return false, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if missing, err = in.Checker.MissingFields(ctx, gvk, api.FieldPaths); err != nil {
			unread(gvk.GroupKind(), api, err)
			return true, api.FieldPaths
		}
		return true, missing
	}
}

// connection is a cluster, and the tracker of its objects.
type connection struct {
	*cluster.Connection
	tracker *tracking.Tracker
}

// namespaced reports whether objects of a kind are in namespaces, if the kind is served.
func (c *connection) namespaced(gk schema.GroupKind) (namespaced, known bool) {
	state := c.State(gk)
	return state.Namespaced, state.Served
}

// newConnection connects to a cluster. held counts the memory of its answers; it can be nil.
func newConnection(
	config *rest.Config, log logr.Logger, held func(int64), kindChanged func(schema.GroupKind), versionChanged func(version.Info),
) (*connection, error) {
	config = rest.CopyConfig(config)
	reflector.BoundPages(config)
	tracker := tracking.New(apinames.Default)
	// A cached discovery would keep the documents, which are large. The checker keeps only the
	// parts that it needs.
	openapi, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for schemas: %w", err)
	}

	checker := schemas.NewCounted(openapi.RESTClient(), held)
	live, err := livestate.New(livestate.Options{
		Names:  apinames.Default,
		Config: config, Observe: tracker.Observe, Changed: tracker.Changed, Held: held,
		KindChanged: func(gk schema.GroupKind) {
			// Built-in groups without a dot change only with the version of the API server.
			if strings.Contains(gk.Group, ".") {
				checker.Refresh() // the schema of a CRD came, changed or went
			}
			tracker.KindChanged(gk)
			kindChanged(gk)
		},
		VersionChanged: func(v version.Info) {
			checker.Refresh()
			versionChanged(v)
		},
		Log: log.WithName("livestate"),
	})
	if err != nil {
		return nil, err
	}

	writer, err := apply.NewWriter(http1Config(config), apinames.Default.FieldManager)
	if err != nil {
		return nil, err
	}

	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	return &connection{
		Connection: &cluster.Connection{Cache: live, Writer: writer, Checker: checker, Metadata: meta}, tracker: tracker,
	}, nil
}
