package reflector

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Source lists and watches the objects of a resource.
type Source struct {
	Client   rest.Interface
	Resource schema.GroupVersionResource
	// Namespace of the objects; empty means all.
	Namespace                    string
	LabelSelector, FieldSelector string
	// MetadataOnly requests PartialObjectMetadata.
	MetadataOnly bool
	// NewList returns an object to decode a list into.
	NewList func() runtime.Object

	// page is the size of the pages after one that was too large; 0 for any.
	page atomic.Int64
}

// ErrTooLarge is wrapped by the errors of answers that exceed the limit.
var ErrTooLarge = errors.New("the answer is too large")

// smallerPage is the divisor for the size of a page that is too large.
const smallerPage = 10

// ListWithContext sends a LIST, and repeats it with a smaller page if the page is too large.
func (s *Source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Continue == "" {
		s.page.Store(0)
	}
	if page := s.page.Load(); page > 0 {
		options.Limit = min(options.Limit, page)
	}
	for {
		list, err := s.list(ctx, options)
		if !errors.Is(err, ErrTooLarge) || options.Limit <= 1 {
			return list, err
		}
		options.Limit = SmallerPage(options.Limit)
		s.page.Store(options.Limit)
	}
}

// SmallerPage returns the size of the page to request instead of one that is too large.
func SmallerPage(limit int64) int64 { return max(limit/smallerPage, 1) }

func (s *Source) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := s.NewList()
	if !s.MetadataOnly {
		return list, s.request(options, "").Do(ctx).Into(list)
	}

	// An API server that knows no metadata-only lists answers with whole objects.
	text, err := s.request(options, metadataAccept("PartialObjectMetadataList")+",application/json").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(text, list)
}

// Get reads an object.
func (s *Source) Get(ctx context.Context, name string, into runtime.Object) error {
	request := s.Client.Get().AbsPath(append(Path(s.Resource, s.Namespace), name)...).MaxRetries(0)
	if !s.MetadataOnly {
		return request.Do(ctx).Into(into)
	}

	text, err := request.SetHeader("Accept", metadataAccept("PartialObjectMetadata")+",application/json").Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// WatchWithContext opens a watch.
func (s *Source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	accept := ""
	if s.MetadataOnly {
		accept = metadataAccept("PartialObjectMetadata")
	}
	return s.request(options, accept).Watch(ctx)
}

func metadataAccept(kind string) string { return "application/json;as=" + kind + ";g=meta.k8s.io;v=v1" }

func (s *Source) request(options metav1.ListOptions, accept string) *rest.Request {
	options.LabelSelector, options.FieldSelector = s.LabelSelector, s.FieldSelector
	request := s.Client.Get().AbsPath(Path(s.Resource, s.Namespace)...).MaxRetries(0).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, metav1.SchemeGroupVersion)
	if accept != "" {
		request.SetHeader("Accept", accept)
	}
	return request
}

// Path returns the path of the objects of a resource, in one namespace unless it is empty.
func Path(r schema.GroupVersionResource, namespace string) []string {
	path := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"api", r.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, r.Resource)
}
