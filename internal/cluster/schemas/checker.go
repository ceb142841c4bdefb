package schemas

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/internal/kube/panics"
)

const (
	schemaDocuments = 12               // that are kept at once
	schemaIdle      = 30 * time.Second // of schemas: longer than between two phases
)

// Checker checks objects against the schemas of one API server. It is safe for
// concurrent use.
type Checker struct {
	client rest.Interface
	// held counts the bytes of the kept documents; it may be nil.
	held func(bytes int64)

	mu sync.Mutex
	// index is the last one read; nil if none was read, or if it was dropped.
	index *index
	// documents by URL, which contains their hash.
	documents map[string]*document
	// idle releases unused documents; nil while none is held.
	idle *time.Timer
}

// New returns a Checker that reads through client, which can be for any group and version. Its
// identity needs GET on /openapi/v3 and /openapi/v3/*, as system:discovery grants.
func New(client rest.Interface) *Checker { return NewCounted(client, nil) }

// NewCounted is New with a function that receives the number of bytes of documents that are kept,
// or released if negative.
func NewCounted(client rest.Interface, held func(bytes int64)) *Checker {
	return &Checker{client: client, held: held, documents: map[string]*document{}}
}

// Check checks objects and returns one error per object, at its index in objs: an [*InvalidError]
// if the API server would refuse the object, an [*UnavailableError] if its schema cannot be read
// now. Objects are not changed.
func (c *Checker) Check(ctx context.Context, objs []*unstructured.Unstructured) []error {
	errs := make([]error, len(objs))
	if len(objs) == 0 {
		return errs
	}

	pending := make([]int, len(objs))
	for i := range objs {
		pending[i] = i
	}
	index, fresh, err := c.currentIndex(ctx)
	again := c.checkAll(ctx, objs, pending, errs, index, err)
	if len(again) == 0 || fresh || err != nil {
		return errs
	}

	// The index can be older than a change of the API.
	c.Refresh()
	index, _, err = c.currentIndex(ctx)
	c.checkAll(ctx, objs, again, errs, index, err)
	return errs
}

// load returns the document of a group version; nil if there is none.
func (c *Checker) load(ctx context.Context, index *index, gv schema.GroupVersion) (*document, error) {
	from := index.of(gv)
	if from == nil {
		return nil, nil
	}

	document := c.document(from.ServerRelativeURL())
	if err := document.load(ctx, from); err != nil {
		return nil, &UnavailableError{GroupVersion: gv, Err: err}
	}
	c.count(document)
	return document, nil
}

// count counts the present size of a document, unless it was dropped meanwhile.
func (c *Checker) count(d *document) {
	if c.held == nil {
		return
	}

	bytes := d.bytes()
	c.mu.Lock()
	more := bytes - d.counted
	if d.dropped {
		more = 0
	}
	d.counted += more
	c.mu.Unlock()
	if more != 0 {
		c.held(more)
	}
}

// drop forgets a document. mu is held.
func (c *Checker) drop(url string) {
	d := c.documents[url]
	delete(c.documents, url)
	if d.dropped = true; c.held != nil && d.counted != 0 {
		c.held(-d.counted)
	}
}

// Refresh makes the next Check read the index again. It is called after a
// CustomResourceDefinition or an APIService was written.
func (c *Checker) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index = nil
}

// checkAll checks the objects at the indices of pending, and returns the invalid and the
// undescribed ones.
func (c *Checker) checkAll(
	ctx context.Context, objs []*unstructured.Unstructured, pending []int, errs []error, index *index, err error,
) (again []int) {
	for _, i := range pending {
		gvk := objs[i].GroupVersionKind()
		if err != nil {
			errs[i] = &UnavailableError{GroupVersion: gvk.GroupVersion(), Err: err}
			continue
		}
		var described bool
		described, errs[i] = c.check(ctx, objs[i], gvk, index)
		if !described || errs[i] != nil {
			again = append(again, i)
		}
	}
	return again
}

func (c *Checker) check(
	ctx context.Context, obj *unstructured.Unstructured, gvk schema.GroupVersionKind, index *index,
) (described bool, err error) {
	document, err := c.load(ctx, index, gvk.GroupVersion())
	if document == nil {
		return err != nil, err
	}
	defer c.count(document) // with the converter of the kind
	return document.check(obj)
}

// currentIndex returns the index; fresh is set if it was read just now.
func (c *Checker) currentIndex(ctx context.Context) (current *index, fresh bool, err error) {
	c.mu.Lock()
	current = c.index
	c.mu.Unlock()
	if current != nil && time.Since(current.read) < schemaIdle {
		return current, false, nil
	}

	current, err = readIndex(ctx, c.client)
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index = current
	c.arm()

	return current, true, nil
}

// document returns the document of a URL, which the caller has to load.
func (c *Checker) document(url string) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.documents[url]
	if found == nil {
		c.makeRoom()
		found = &document{}
		c.documents[url] = found
	}

	found.used = time.Now()
	c.arm()
	return found
}

// makeRoom drops the least recently used document.
func (c *Checker) makeRoom() {
	if len(c.documents) < schemaDocuments {
		return
	}

	var oldest string
	for url, document := range c.documents {
		if oldest == "" || document.used.Before(c.documents[oldest].used) {
			oldest = url
		}
	}

	c.drop(oldest)
}

// arm starts the timer that releases memory. It is called with mu held.
func (c *Checker) arm() {
	if c.idle == nil {
		c.idle = panics.After(schemaIdle, "releasing schemas", c.release)
	}
}

// release drops documents that were not used for schemaIdle.
func (c *Checker) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for url, document := range c.documents {
		if time.Since(document.used) >= schemaIdle {
			c.drop(url)
		}
	}

	if c.index != nil && time.Since(c.index.read) >= schemaIdle {
		c.index = nil
	}
	c.idle = nil
	if c.index != nil || len(c.documents) > 0 {
		c.arm()
	}
}
