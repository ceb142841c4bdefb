package memory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
)

// Kind is a kind that a Server can serve.
type Kind struct {
	schema.GroupVersionKind
	// ClusterScoped means that its objects have no namespace.
	ClusterScoped bool
	// Custom means that a CustomResourceDefinition defines the kind.
	Custom bool
	// Unmanaged means that objects have no managedFields.
	Unmanaged bool
	// Union are fields of the spec that exclude each other.
	Union []string
	// Unserved means that requests fail as if the kind did not exist.
	Unserved bool
}

// Event is one change of one object. Before is nil for a new object, After for a deleted one.
type Event struct {
	Version       int64
	Key           objects.Key
	Before, After *unstructured.Unstructured
}

// Server stores objects. It never modifies stored states in place.
type Server struct {
	// Names are the names that an engine's connections use.
	Names *objects.Names
	// Now is the clock.
	Now func() time.Time
	// Admit validates writes; before is nil for a new object. It can be nil.
	Admit func(key objects.Key, before, after *unstructured.Unstructured) error
	// Stored is called after each change. It can be nil.
	Stored func(Event)

	kinds   map[schema.GroupKind]*Kind
	fields  map[schema.GroupKind]*fieldManager
	objects map[objects.Key]*unstructured.Unstructured
	events  []Event
	version int64
	uids    int
}

// NewServer returns a server without objects that serves kinds.
func NewServer(names *objects.Names, now func() time.Time, kinds ...Kind) *Server {
	s := &Server{
		Names: names, Now: now, kinds: map[schema.GroupKind]*Kind{}, fields: map[schema.GroupKind]*fieldManager{},
		objects: map[objects.Key]*unstructured.Unstructured{}, version: 1,
	}
	for _, k := range kinds {
		s.kinds[k.GroupKind()] = &k
		s.fields[k.GroupKind()] = newFieldManager(k.GroupVersionKind)
	}
	return s
}

// Backup is the content of a Server at one moment.
type Backup struct {
	objects map[objects.Key]*unstructured.Unstructured
	version int64
}

// Backup returns a copy of the stored objects.
func (s *Server) Backup() *Backup { return &Backup{objects: maps.Clone(s.objects), version: s.version} }

// Get returns the state of an object, which must not be changed, or nil.
func (b *Backup) Get(key objects.Key) *unstructured.Unstructured { return b.objects[key] }

// Keys returns the keys of all objects in order.
func (b *Backup) Keys() []objects.Key {
	return slices.SortedFunc(maps.Keys(b.objects), objects.Key.Compare)
}

// Restore restores everything, including resource versions, like a snapshot of etcd. Earlier
// connections must not be used any more.
func (s *Server) Restore(b *Backup) {
	s.objects, s.version, s.events = maps.Clone(b.objects), b.version, nil
}

// Version is the last resource version.
func (s *Server) Version() int64 { return s.version }

// Serves reports whether a kind is served.
func (s *Server) Serves(gk schema.GroupKind) bool {
	k := s.kinds[gk]
	return k != nil && !k.Unserved
}

// Serve starts serving a kind, or stops it and removes all objects of the kind.
func (s *Server) Serve(gk schema.GroupKind, served bool) {
	s.kinds[gk].Unserved = !served
	for _, key := range s.Keys() {
		if !served && key.GroupKind() == gk {
			s.store(key, nil)
		}
	}
}

// Keys returns the keys of all objects in order.
func (s *Server) Keys() []objects.Key {
	return slices.SortedFunc(maps.Keys(s.objects), objects.Key.Compare)
}

// Get returns the state of an object, which must not be changed, or nil.
func (s *Server) Get(key objects.Key) *unstructured.Unstructured { return s.objects[key] }

// Create stores a new object.
func (s *Server) Create(key objects.Key, obj *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	return s.create(key, obj, manager, false)
}

func (s *Server) create(key objects.Key, obj *unstructured.Unstructured, manager string, dryRun bool) (*unstructured.Unstructured, error) {
	if err := s.served(key); err != nil {
		return nil, err
	}
	if s.objects[key] == nil {
		return s.update(key, nil, obj.DeepCopy(), manager, dryRun)
	}
	if _, err := s.update(key, nil, obj.DeepCopy(), manager, true); err != nil {
		return nil, err // an object is validated before it is looked up
	}
	return nil, apierrors.NewAlreadyExists(s.resource(key), key.Name)
}

// Edit changes an object by an update of manager. It does nothing if the object is absent.
func (s *Server) Edit(key objects.Key, manager string, change func(*unstructured.Unstructured)) (*unstructured.Unstructured, error) {
	before := s.objects[key]
	if before == nil {
		return nil, apierrors.NewNotFound(s.resource(key), key.Name)
	}
	next := before.DeepCopy()
	change(next)
	return s.update(key, before, next, manager, false)
}

// UpdateStatus replaces the status of an object in a state.
func (s *Server) UpdateStatus(key objects.Key, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before := s.objects[key]
	if before == nil {
		return nil, apierrors.NewNotFound(s.resource(key), key.Name)
	}
	if err := s.guard(key, before, obj); err != nil {
		return nil, err
	}
	next := before.DeepCopy()
	next.Object["status"] = obj.Object["status"]
	return s.update(key, before, next, "", false)
}

// MergePatch changes an object by a merge patch. UID and resource version in the patch guard it.
func (s *Server) MergePatch(key objects.Key, patch []byte, manager string) (*unstructured.Unstructured, error) {
	return s.patch(key, manager, false, func(doc []byte) ([]byte, error) { return jsonpatch.MergePatch(doc, patch) })
}

// JSONPatch changes an object by a list of operations, either all of them or none.
func (s *Server) JSONPatch(key objects.Key, patch []byte, manager string) (*unstructured.Unstructured, error) {
	return s.jsonPatch(key, patch, manager, false)
}

func (s *Server) jsonPatch(key objects.Key, patch []byte, manager string, dryRun bool) (*unstructured.Unstructured, error) {
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.patch(key, manager, dryRun, ops.Apply)
}

func (s *Server) patch(key objects.Key, manager string, dryRun bool, apply func([]byte) ([]byte, error)) (*unstructured.Unstructured, error) {
	if err := s.served(key); err != nil {
		return nil, err
	}

	before := s.objects[key]
	if before == nil {
		return nil, apierrors.NewNotFound(s.resource(key), key.Name)
	}

	doc, err := before.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if doc, err = apply(doc); err != nil {
		return nil, apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}

	next := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(doc, &next.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := s.guard(key, before, next); err != nil {
		return nil, err
	}

	return s.update(key, before, next, manager, dryRun)
}

// Apply is a server-side apply.
func (s *Server) Apply(key objects.Key, body []byte, manager string, force, dryRun bool) (*unstructured.Unstructured, error) {
	if err := s.served(key); err != nil {
		return nil, err
	}

	applied := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &applied.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}

	before := s.objects[key]
	if version := applied.GetResourceVersion(); before == nil && (version != "" && version != apply.AbsentVersion || applied.GetUID() != "") {
		return nil, apierrors.NewConflict(s.resource(key), key.Name, fmt.Errorf("uid mismatch: no existing object was found"))
	}

	next, err := s.fields[key.GroupKind()].apply(before, applied, manager, force)
	if err != nil {
		return nil, err
	}

	if before != nil { // after conflicts of fields
		if err := s.guard(key, before, applied); err != nil {
			return nil, err
		}
	}

	return s.finish(key, before, next, dryRun)
}

// Delete deletes an object in a state; empty means any. If finalizers hold the object, it returns
// the object.
func (s *Server) Delete(key objects.Key, uid types.UID, resourceVersion string) (*unstructured.Unstructured, error) {
	return s.delete(key, uid, resourceVersion, false)
}

// delete also deletes in the foreground: the garbage collector's finalizer, which the caller has to
// handle, holds the object.
func (s *Server) delete(key objects.Key, uid types.UID, resourceVersion string, foreground bool) (*unstructured.Unstructured, error) {
	if err := s.served(key); err != nil {
		return nil, err
	}

	before := s.objects[key]
	switch {
	case before == nil:
		return nil, apierrors.NewNotFound(s.resource(key), key.Name)
	case uid != "" && before.GetUID() != uid, resourceVersion != "" && before.GetResourceVersion() != resourceVersion:
		return nil, apierrors.NewConflict(s.resource(key), key.Name, fmt.Errorf("the precondition failed"))
	case before.GetDeletionTimestamp() != nil:
		return before, nil
	case len(before.GetFinalizers()) == 0 && !foreground:
		s.store(key, nil)
		return nil, nil
	}

	next := before.DeepCopy()
	at := metav1.NewTime(s.Now())
	next.SetDeletionTimestamp(&at)
	if foreground {
		next.SetFinalizers(append(next.GetFinalizers(), metav1.FinalizerDeleteDependents))
	}

	next.SetGeneration(before.GetGeneration() + 1)
	return s.store(key, next), nil
}

// guard compares an object with the state that a request names.
func (s *Server) guard(key objects.Key, before, named *unstructured.Unstructured) error {
	switch {
	case named.GetResourceVersion() != "" && named.GetResourceVersion() != before.GetResourceVersion():
		return apierrors.NewConflict(s.resource(key), key.Name, fmt.Errorf("the object has been modified"))
	case named.GetUID() != "" && named.GetUID() != before.GetUID():
		return apierrors.NewInvalid(s.kinds[key.GroupKind()].GroupKind(), key.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), named.GetUID(), "field is immutable"),
		})
	}
	return nil
}

func (s *Server) update(key objects.Key, before, next *unstructured.Unstructured, manager string, dryRun bool) (*unstructured.Unstructured, error) {
	dropEmpty(next)
	s.setDefaults(key, next)
	if k := s.kinds[key.GroupKind()]; !k.Unmanaged && manager != "" {
		var err error
		if next, err = s.fields[key.GroupKind()].update(before, next, manager); err != nil {
			return nil, err
		}
	}
	return s.finish(key, before, next, dryRun)
}

// finish stores the result of a write.
func (s *Server) finish(key objects.Key, before, next *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	next.SetResourceVersion("")
	dropEmpty(next)
	s.setDefaults(key, next)
	if !s.kinds[key.GroupKind()].Custom { // only the encoding of custom resources has null
		maps.DeleteFunc(next.Object, func(_ string, v any) bool { return v == nil })
	}

	if before == nil {
		at := metav1.NewTime(s.Now())
		next.SetUID("")
		next.SetCreationTimestamp(at)
		next.SetGeneration(1)
		next.SetNamespace(key.Namespace)
		next.SetName(key.Name)
	} else {
		next.SetUID(before.GetUID())
		next.SetCreationTimestamp(before.GetCreationTimestamp())
		next.SetDeletionTimestamp(before.GetDeletionTimestamp())
		next.SetResourceVersion(before.GetResourceVersion())
		next.SetGeneration(before.GetGeneration())
		if same(before, next) {
			return before, nil
		}
		for _, finalizer := range next.GetFinalizers() {
			if next.GetDeletionTimestamp() != nil && !slices.Contains(before.GetFinalizers(), finalizer) {
				return nil, apierrors.NewInvalid(s.kinds[key.GroupKind()].GroupKind(), key.Name, field.ErrorList{
					field.Forbidden(field.NewPath("metadata", "finalizers"), "no new finalizers can be added if the object is being deleted"),
				})
			}
		}
		if !equality.Semantic.DeepEqual(content(before), content(next)) {
			next.SetGeneration(before.GetGeneration() + 1)
		}
	}

	if err := s.validate(key, next); err != nil {
		return nil, err
	}

	if s.Admit != nil {
		if err := s.Admit(key, before, next); err != nil {
			return nil, err
		}
	}

	switch {
	case dryRun:
		return next, nil
	case before == nil:
		s.uids++
		next.SetUID(types.UID("u" + strconv.Itoa(s.uids)))
	case next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0:
		s.store(key, nil)
		return next, nil
	}

	return s.store(key, next), nil
}

// dropEmpty removes fields that an ObjectMeta omits when it is encoded.
func dropEmpty(obj *unstructured.Unstructured) {
	m, _ := obj.Object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		if isEmpty(m[field]) {
			delete(m, field)
		}
	}
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// store makes next the state of an object; nil removes it.
func (s *Server) store(key objects.Key, next *unstructured.Unstructured) *unstructured.Unstructured {
	s.version++
	before := s.objects[key]
	if next == nil {
		delete(s.objects, key)
	} else {
		next.SetResourceVersion(strconv.FormatInt(s.version, 10))
		s.objects[key] = next
	}

	event := Event{Version: s.version, Key: key, Before: before, After: next}
	s.events = append(s.events, event)
	if s.Stored != nil {
		s.Stored(event)
	}

	return next
}

func (s *Server) served(key objects.Key) error {
	if s.Serves(key.GroupKind()) {
		return nil
	}
	return apierrors.NewGenericServerResponse(404, "", schema.GroupResource{}, "", "the server could not find the requested resource", 0, true)
}

func (s *Server) resource(key objects.Key) schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(s.kinds[key.GroupKind()].GroupVersionKind)
	return plural.GroupResource()
}

// same reports whether a write changes nothing. It ignores the times in managedFields.
func same(a, b *unstructured.Unstructured) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, u := range []*unstructured.Unstructured{x, y} {
		fields := u.GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
		u.SetManagedFields(fields)
	}
	return equality.Semantic.DeepEqual(x.Object, y.Object)
}

// content is the part that generations count: everything except metadata and status.
func content(u *unstructured.Unstructured) map[string]any {
	rest := maps.Clone(u.Object)
	delete(rest, "metadata")
	delete(rest, "status")
	return rest
}
