package cluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/cluster/schemas"
	"lockstep.run/lockstep/internal/objects"
)

// Connection is the Cluster behind an API server.
type Connection struct {
	*livestate.Cache
	// Writer has the manager's own identity.
	Writer *apply.Writer
	*schemas.Checker
	Metadata metadata.Interface
}

var _ Cluster = (*Connection)(nil)

// As returns the writes as an account. They share the connections of the Writer.
func (c *Connection) As(account objects.Account) Writes { return c.Writer.As(account.User()) }

// Get reads an object from the API server.
func (c *Connection) Get(ctx context.Context, m *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	return c.Writer.Get(ctx, m, namespace, name)
}

// Observed returns the record of the live cache.
func (c *Connection) Observed(key objects.Key) (*objects.Observed, bool) { return c.Cache.Get(key) }

// GetMetadata reads the metadata of an object.
func (c *Connection) GetMetadata(ctx context.Context, m *meta.RESTMapping, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	return c.Metadata.Resource(m.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// ListMetadata lists metadata; an empty namespace means all.
func (c *Connection) ListMetadata(
	ctx context.Context, m *meta.RESTMapping, namespace string, opts metav1.ListOptions,
) (*metav1.PartialObjectMetadataList, error) {
	return c.Metadata.Resource(m.Resource).Namespace(namespace).List(ctx, opts)
}

// Now is the time of this machine.
func (c *Connection) Now() time.Time { return time.Now() }
