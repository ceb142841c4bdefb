package dryrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// Cluster is the cluster that is looked at. Nothing is written to it.
type Cluster struct {
	// Reader reads the kinds of this project, and Secrets.
	Reader client.Reader
	// Writer sends reads and dry runs of any kind.
	Writer *apply.Writer
	// Metadata lists objects of any kind by their metadata.
	Metadata metadata.Interface
	// Mapper knows the kinds that the API server serves now.
	Mapper meta.RESTMapper
	// Schemas checks what is to be created as the engine does before a phase.
	Schemas *schemas.Checker
}

// Connect prepares the clients for a configuration. It asks the API server what it
// serves.
func Connect(ctx context.Context, config *rest.Config, reader client.Reader) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	// What a webhook warns of may repeat a Secret, which is not to be printed.
	config.WarningHandler = rest.NoWarnings{}
	c := &Cluster{Reader: reader}
	var err error
	if c.Writer, err = apply.NewWriter(config); err != nil {
		return nil, err
	}
	if c.Metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(disco)
	if err != nil {
		return nil, fmt.Errorf("ask the API server what it serves: %w", err)
	}
	c.Mapper = restmapper.NewDiscoveryRESTMapper(groups)
	c.Schemas = schemas.New(disco.RESTClient())
	return c, nil
}

// namespaced answers for rollout.Load whether a kind is namespaced.
func (c *Cluster) namespaced(gk schema.GroupKind, version string) (namespaced, known bool) {
	m, err := c.Mapper.RESTMapping(gk, version)
	if err != nil {
		return false, false
	}
	return m.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// sight is what the API server shows of one object.
type sight struct {
	// mapping is nil where the kind is not served in the version of the template.
	mapping *meta.RESTMapping
	// served means that the kind is served, in whatever version.
	served bool
	// live is nil where there is no such object.
	live *unstructured.Unstructured
}

// read reads objects; versions are those of their templates.
func (c *Cluster) read(ctx context.Context, versions map[objects.Key]string) (map[objects.Key]sight, error) {
	found := make(map[objects.Key]sight, len(versions))
	keys := slices.SortedFunc(maps.Keys(versions), objects.Key.Compare)
	var mu sync.Mutex
	err := parallel(ctx, len(keys), func(i int) error {
		s, err := c.readOne(ctx, keys[i], versions[keys[i]])
		mu.Lock()
		defer mu.Unlock()
		found[keys[i]] = s
		return err
	})
	return found, err
}

func (c *Cluster) readOne(ctx context.Context, key objects.Key, version string) (sight, error) {
	var s sight
	m, err := c.Mapper.RESTMapping(key.GroupKind(), version)
	switch {
	case err == nil:
		s.mapping, s.served = m, true
	case !meta.IsNoMatchError(err):
		return s, err
	default:
		if m, err = c.Mapper.RESTMapping(key.GroupKind()); meta.IsNoMatchError(err) {
			return s, nil
		} else if err != nil {
			return s, err
		}
		s.served = true
	}
	live, err := c.Writer.Get(ctx, m, key.Namespace, key.Name)
	if apply.IsAbsent(err) {
		return s, nil
	}
	s.live = live
	return s, err
}

// parallel calls do for 0 to n-1, as many at once as the engine has writes in
// flight. The error is that of the lowest number.
func parallel(ctx context.Context, n int, do func(i int) error) error {
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(limits.WritesInFlight)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			errs[i] = do(i)
			return nil
		})
	}
	_ = group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// unverifiable tells of an error of a dry run that it says nothing about the write
// itself, and why.
func unverifiable(err error) (why string, is bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", false
	}
	s := status.Status()
	switch {
	case s.Code == http.StatusForbidden && strings.Contains(s.Message, "User \"") && strings.Contains(s.Message, "cannot "):
		return "you may not write it: " + s.Message, true
	case s.Code == http.StatusForbidden && strings.Contains(s.Message, "is attempting to grant RBAC permissions not currently held"):
		return "you may not grant all of the rights that it grants; the engine may", true
	case strings.Contains(s.Message, "does not support dry run"):
		return "a webhook has no dry runs: " + s.Message, true
	}
	switch apply.Classify(err) {
	case apply.StaleFields:
		return "its managedFields name a version that is not served any more; the engine puts that right first", true
	case apply.NotServed:
		return "its API is not served yet", true
	}
	return "", false
}
