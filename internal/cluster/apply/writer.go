package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"lockstep.run/lockstep/internal/cluster/reflector"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

// AbsentVersion is a metadata.resourceVersion that no object ever has, for the guard of an apply.
// The API server creates the object if it is absent, and answers 409 if it is present, also with
// force.
const AbsentVersion = "1"

// Writer writes and reads single objects of one cluster with one identity. It
// is safe for concurrent use.
type Writer struct {
	client *rest.RESTClient
	// manager is the field manager of all writes.
	manager string
	// user is impersonated; empty for the identity of the configuration.
	user string
}

// NewWriter returns a Writer for the configuration, by a field manager. A guard against writing
// without the leader lease is wrapped into the configuration by the caller.
func NewWriter(config *rest.Config, manager string) (*Writer, error) {
	config = dynamic.ConfigFor(config)
	config.QPS, config.RateLimiter = -1, nil
	config.Timeout = limits.WriteTimeout
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		// Deprecations concern the author of a package, and the linter shows them.
		config.WarningHandler = rest.NoWarnings{}
	}

	config.Wrap(limitResponses)
	// Requests contain their full path, but the client requires one.
	config.GroupVersion, config.APIPath = nil, "/"
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client to write objects: %w", err)
	}

	return &Writer{client: client, manager: manager}, nil
}

// As returns a Writer that impersonates a user, such as system:serviceaccount:NAMESPACE:NAME,
// to which the API server adds the groups of service accounts. It shares connections and
// the guard of w. An empty user is the identity of the configuration.
func (w *Writer) As(user string) *Writer {
	return &Writer{client: w.client, manager: w.manager, user: user}
}

// request completes a request. The client does not retry: the engine waits after a 429, and decides
// again before every attempt.
func (w *Writer) request(req *rest.Request) *rest.Request {
	if w.user != "" {
		req.SetHeader(transport.ImpersonateUserHeader, w.user)
	}
	return req.MaxRetries(0)
}

// CloseIdleConnections closes connections that no request uses.
func (w *Writer) CloseIdleConnections() {
	utilnet.CloseIdleConnectionsFor(w.client.Client.Transport)
}

// ApplyRequest is one server-side apply by the field manager package-operator.
type ApplyRequest struct {
	// Mapping names kind, version, resource and scope.
	Mapping *meta.RESTMapping
	// Namespace is empty for cluster-scoped kinds.
	Namespace, Name string
	// Body is the JSON of the applied object, including its guards.
	Body []byte
	// Force takes over fields of other managers.
	Force bool
	// DryRun makes the server decide without storing anything.
	DryRun bool
	// FieldValidation is Ignore, Warn or Strict; empty means the server's default, Warn. Built-in
	// kinds always refuse unknown fields in an apply; custom resources only with Strict.
	FieldValidation string
}

// Apply sends a server-side apply and returns the resulting object. An API server delays creates of
// a kind by two seconds after its CRD was established; an apply avoids that delay.
func (w *Writer) Apply(ctx context.Context, r ApplyRequest) (*unstructured.Unstructured, error) {
	req := w.patch(types.ApplyYAMLPatchType, r.Mapping, r.Namespace, r.Name, r.Body)
	if r.Force {
		req.Param("force", strconv.FormatBool(true))
	}
	if r.FieldValidation != "" {
		req.Param("fieldValidation", r.FieldValidation)
	}
	return object(ctx, req, describe(dry(req, "apply", r.DryRun), r.Mapping, r.Namespace, r.Name))
}

// Create sends a POST of an object that must not exist, and returns the created object. It costs
// the API server about two thirds of an apply that creates. Unknown and repeated fields are
// refused. The created object carries an Update entry in managedFields, see drift.Migration. The
// dry run of a valid object that exists fails with AlreadyExists.
func (w *Writer) Create(ctx context.Context, m *meta.RESTMapping, namespace, name string, body []byte, dryRun bool) (*unstructured.Unstructured, error) {
	req := w.request(w.client.Post()).AbsPath(pathOf(m, namespace, "")...).
		Param("fieldManager", w.manager).
		Param("fieldValidation", metav1.FieldValidationStrict).
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(body)
	return object(ctx, req, describe(dry(req, "create", dryRun), m, namespace, name))
}

// dry makes a request a dry run if dryRun is set, and returns the verb that describes it.
func dry(req *rest.Request, verb string, dryRun bool) string {
	if !dryRun {
		return verb
	}
	req.Param("dryRun", metav1.DryRunAll)
	return "dry-run " + verb
}

// Patch sends a JSON patch (RFC 6902) and returns the resulting object. If a test in the patch
// fails, the class of the error is Conflict.
func (w *Writer) Patch(ctx context.Context, m *meta.RESTMapping, namespace, name string, jsonPatch []byte, dryRun bool) (*unstructured.Unstructured, error) {
	req := w.patch(types.JSONPatchType, m, namespace, name, jsonPatch)
	return object(ctx, req, describe(dry(req, "patch", dryRun), m, namespace, name))
}

// Get reads the live object in the version of the mapping.
func (w *Writer) Get(ctx context.Context, m *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	req := w.request(w.client.Get()).AbsPath(pathOf(m, namespace, name)...)
	return object(ctx, req, describe("get", m, namespace, name))
}

// Delete deletes the object if it still has the given UID and resource version (an empty one is not
// checked). It reports gone if the answer proves that the object is no longer stored: a Status, a
// 404 of the object, or the deleted object without a deletion timestamp, as for ServiceAccounts.
// Otherwise it returns the terminating object.
func (w *Writer) Delete(
	ctx context.Context, m *meta.RESTMapping, namespace, name string,
	uid types.UID, resourceVersion string, policy metav1.DeletionPropagation,
) (gone bool, live *unstructured.Unstructured, err error) {
	what := describe("delete", m, namespace, name)
	body, err := deleteOptions(uid, resourceVersion, policy)
	if err != nil {
		return false, nil, what.wrap(err)
	}
	answer, err := w.request(w.client.Delete()).AbsPath(pathOf(m, namespace, name)...).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Get()
	if err != nil {
		if err = what.wrap(err); Classify(err) == Absent {
			return true, nil, nil
		}
		return false, nil, err
	}
	switch answer := answer.(type) {
	case *metav1.Status:
		return true, nil, nil
	case *unstructured.Unstructured:
		if answer.GetDeletionTimestamp() == nil {
			return true, nil, nil
		}
		return false, answer, nil
	}
	return false, nil, what.wrap(fmt.Errorf("the API server answered with an unexpected %T", answer))
}

// pathOf returns the URL path of an object, or of the collection if the name is empty.
func pathOf(m *meta.RESTMapping, namespace, name string) []string {
	path := reflector.Path(m.Resource, namespace)
	if name != "" {
		path = append(path, name)
	}
	return path
}

func (w *Writer) patch(kind types.PatchType, m *meta.RESTMapping, namespace, name string, body []byte) *rest.Request {
	return w.request(w.client.Patch(kind)).AbsPath(pathOf(m, namespace, name)...).
		Param("fieldManager", w.manager).
		Body(body)
}

// object sends the request and returns the object in the answer.
func object(ctx context.Context, req *rest.Request, what *Error) (*unstructured.Unstructured, error) {
	result := req.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, what.wrap(err)
	}
	body, err := result.Raw()
	if err != nil {
		return nil, what.wrap(err)
	}

	live := &unstructured.Unstructured{}
	// The decoder of the client would scan the body three times.
	if err := utiljson.Unmarshal(body, &live.Object); err != nil {
		return nil, what.wrap(fmt.Errorf("read the answer of the API server: %w", err))
	}
	if live.GetUID() == "" {
		return nil, what.wrap(fmt.Errorf("the API server answered with a %s instead of the object", live.GetKind()))
	}

	return live, nil
}

func deleteOptions(uid types.UID, resourceVersion string, policy metav1.DeletionPropagation) ([]byte, error) {
	options := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{},
	}

	if uid != "" {
		options.Preconditions.UID = &uid
	}
	if resourceVersion != "" {
		options.Preconditions.ResourceVersion = &resourceVersion
	}

	return json.Marshal(options)
}

// Error is the failure of one request about an object. Its text is verb and
// object, followed by the text of its cause.
type Error struct {
	// Verb is get, create, apply, patch or delete, with dry-run before it for a dry run.
	Verb string
	// Resource is the plural name of the resource, with its group.
	Resource string
	// Key names the object.
	Key objects.Key
	// Err is the cause: an API status error or a network error.
	Err error
}

// Error returns verb, object and cause.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %v", e.Verb, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func describe(verb string, m *meta.RESTMapping, namespace, name string) *Error {
	return &Error{Verb: verb, Resource: m.Resource.Resource, Key: objects.Key{
		Group: m.GroupVersionKind.Group, Kind: m.GroupVersionKind.Kind, Namespace: namespace, Name: name,
	}}
}

// wrap completes e with its cause.
func (e *Error) wrap(err error) error {
	if err == nil {
		return nil
	}
	var inner *Error
	if errors.As(err, &inner) {
		return err
	}

	e.Err = err
	return e
}

// limitResponses bounds the part of a response that is read into memory.
func limitResponses(next http.RoundTripper) http.RoundTripper { return &bounded{next} }

type bounded struct{ next http.RoundTripper }

// RoundTrip returns a response whose body ends with an error at the limit.
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err == nil && res.Body != nil {
		res.Body = &boundedBody{ReadCloser: res.Body, left: limits.ResponseBytes}
	}
	return res, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (b *bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// ErrResponseTooLarge means that an API server's response exceeds limits.ResponseBytes; its class
// is Blocked.
var ErrResponseTooLarge = fmt.Errorf("the API server's response is larger than %d MiB, the most that is read of one object", limits.ResponseBytes>>20)

// boundedBody fails a read beyond its remaining bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read reads, or fails if the response is too large.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, ErrResponseTooLarge
	}
	return n, err
}
