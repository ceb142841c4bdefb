package livestate_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/internal/cluster"
	"lockstep.run/lockstep/internal/cluster/apply"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/test/memory"
	"lockstep.run/lockstep/test/require"
)

// server is a real or a simulated API server, with the requests of the engine and of another user.
type server interface {
	cluster.Reads
	As(account objects.Account) cluster.Writes
	// edit updates an object as another field manager does.
	edit(m *meta.RESTMapping, namespace, name, manager string, change func(*unstructured.Unstructured)) error
}

type realServer struct {
	*cluster.Connection
	t     *testing.T
	admin client.Client
}

func (s realServer) edit(m *meta.RESTMapping, namespace, name, manager string, change func(*unstructured.Unstructured)) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(m.GroupVersionKind)
	if err := s.admin.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, live); err != nil {
		return err
	}
	change(live)
	return s.admin.Update(s.t.Context(), live, client.FieldOwner(manager))
}

type memoryServer struct{ *memory.Cluster }

func (s memoryServer) edit(m *meta.RESTMapping, namespace, name, manager string, change func(*unstructured.Unstructured)) error {
	key := objects.Key{Group: m.GroupVersionKind.Group, Kind: m.GroupVersionKind.Kind, Namespace: namespace, Name: name}
	_, err := s.Server.Edit(key, manager, change)
	return err
}

// write is one request, with each server's own states of the object.
type write struct {
	verb string
	// fields are created or applied, or set by an edit or a patch.
	fields obj
	// guard is one of none, absent, current, stale and foreign.
	guard         string
	force, dryRun bool
}

func (w write) String() string {
	return fmt.Sprintf("%s %v guard=%s force=%v dryRun=%v", w.verb, w.fields, w.guard, w.force, w.dryRun)
}

// subject is the object that a sequence of writes is about, on one server.
type subject struct {
	server
	t               *testing.T
	mapping         *meta.RESTMapping
	namespace, name string
	last, before    *unstructured.Unstructured // the last two states
	err             error                      // of the last write
}

// do sends a write, and returns comparable results: the class of the answer, and the resulting
// object.
func (s *subject) do(w write) string {
	s.t.Helper()
	uid, version := s.guards(w.guard)
	as, ctx := s.As(objects.Account{}), s.t.Context()
	var err error
	switch w.verb {
	case "create":
		_, err = as.Create(ctx, s.mapping, s.namespace, s.name, s.request(w, nil).Body, false)
	case "apply":
		_, err = as.Apply(ctx, s.request(w, map[string]string{"uid": uid, "resourceVersion": version}))
	case "patch":
		var ops []any
		if uid != "" {
			ops = append(ops, obj{"op": "test", "path": "/metadata/uid", "value": uid})
		}
		if version != "" {
			ops = append(ops, obj{"op": "test", "path": "/metadata/resourceVersion", "value": version})
		}
		for _, key := range slices.Sorted(maps.Keys(w.fields)) {
			ops = append(ops, obj{"op": "add", "path": "/" + key, "value": w.fields[key]})
		}
		ops = append(ops, obj{"op": "remove", "path": "/metadata/labels/b"})
		_, err = as.Patch(ctx, s.mapping, s.namespace, s.name, toJSON(s.t, ops), false)
	case "delete":
		_, _, err = as.Delete(ctx, s.mapping, s.namespace, s.name, types.UID(uid), version, metav1.DeletePropagationBackground)
	case "edit":
		err = s.edit(s.mapping, s.namespace, s.name, "kubectl-edit", func(live *unstructured.Unstructured) {
			for key, value := range w.fields {
				if key != "metadata" {
					live.Object[key] = value
				}
			}
			for key, value := range w.fields["metadata"].(obj) {
				live.Object["metadata"].(obj)[key] = value
			}
		})
	}
	s.err, s.before = err, s.last
	live, err := s.Get(ctx, s.mapping, s.namespace, s.name)
	if err != nil && !apply.IsAbsent(err) {
		s.t.Fatal(err)
	}
	s.last = live
	return apply.Classify(s.err).String() + "\n" + s.comparable()
}

// request returns a write as an apply, with guards that are not empty.
func (s *subject) request(w write, guards map[string]string) apply.ApplyRequest {
	metadata, rest := maps.Clone(w.fields["metadata"].(obj)), maps.Clone(w.fields)
	for field, value := range guards {
		if value != "" {
			metadata[field] = value
		}
	}
	delete(rest, "metadata")
	r := request(s.t, s.mapping, s.namespace, s.name, metadata, rest)
	r.Force, r.DryRun = w.force, w.dryRun
	return r
}

// guards returns the UID and the resource version that a write names.
func (s *subject) guards(of string) (uid, version string) {
	switch {
	case of == "absent":
		return "", apply.AbsentVersion
	case of == "foreign":
		return "2d1a2f6e-0000-4000-8000-000000000000", ""
	case of == "current" && s.last != nil:
		return string(s.last.GetUID()), s.last.GetResourceVersion()
	case of == "stale" && s.before != nil:
		return string(s.before.GetUID()), s.before.GetResourceVersion()
	}
	return "", ""
}

// comparable returns the state of the object without values that differ between two servers.
func (s *subject) comparable() string {
	if s.last == nil {
		return "absent"
	}
	live := s.last.DeepCopy()
	changed := s.before == nil || s.before.GetResourceVersion() != live.GetResourceVersion()
	replaced := s.before == nil || s.before.GetUID() != live.GetUID()
	var fields []string
	for _, entry := range live.GetManagedFields() {
		fields = append(fields, fmt.Sprintf("%s %s %s %s", entry.Manager, entry.Operation, entry.APIVersion, entry.FieldsV1.GetRawString()))
	}
	slices.Sort(fields)
	deleting := live.GetDeletionTimestamp() != nil
	if s.mapping == configMaps {
		live.SetGeneration(0) // its requests are not counted
	}
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace"} {
		unstructured.RemoveNestedField(live.Object, "metadata", field)
	}
	text, err := live.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("changed=%v replaced=%v deleting=%v\n%s%s", changed, replaced, deleting, text, strings.Join(fields, "\n"))
}

// writes draws any write to an object whose fields of content are below key.
func writes(key string) *rapid.Generator[write] {
	return rapid.Custom(func(t *rapid.T) write {
		pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		rarely := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 3 }
		some := func(label string) obj {
			m := obj{}
			for _, field := range []string{"a", "b"} {
				if value := pick(label+"."+field, "", "1", "2"); value != "" {
					m[field] = value
				}
			}
			return m
		}
		w := write{
			verb:  pick("verb", "apply", "apply", "apply", "create", "edit", "edit", "patch", "delete"),
			guard: pick("guard", "", "current", "current", "absent", "stale", "foreign"),
			force: rapid.Bool().Draw(t, "force"), dryRun: rarely("dry run"),
		}
		metadata := obj{"labels": some("labels")}
		if rarely("annotations") {
			metadata["annotations"] = some("annotations")
		}
		if rarely("finalizers") {
			metadata["finalizers"] = []any{}
			if finalizer := pick("finalizer", "", "x", "y"); finalizer != "" {
				metadata["finalizers"] = []any{"example.com/" + finalizer}
			}
		}
		if rarely("owner") {
			metadata["ownerReferences"] = []any{obj{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "uid-" + pick("uid", "1", "2")}}
		}
		w.fields = obj{"metadata": metadata}
		if content := some(key); len(content) > 0 { // a ConfigMap has no empty data
			w.fields[key] = content
		}
		if w.verb == "patch" {
			w.fields = obj{"metadata/labels": some("all labels"), key + "/a": pick("a", "1", "2")}
		}
		return w
	})
}

// The API server in memory, which simulations of the engine use, answers random requests as a real
// one does: with the same classes of errors, and the same objects and managedFields.
func TestMemoryAnswersAsAnAPIServer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	thing := crd(unique("answers")+".example.com", "Thing", apiextensionsv1.NamespaceScoped, "v1")
	e.installCRD(t, thing)
	things := mapping(thing.Spec.Group, "v1", "Thing", "things", true)
	eventually(t, "the admin's discovery has the kind", func() bool {
		_, err := e.admin.RESTMapper().RESTMapping(things.GroupVersionKind.GroupKind(), "v1")
		return err == nil
	})
	client, err := metadata.NewForConfig(e.config)
	require.NoError(t, err)
	served := realServer{&cluster.Connection{Writer: newWriter(t, e.config), Metadata: client}, t, e.admin}
	for key, m := range map[string]*meta.RESTMapping{"data": configMaps, "spec": things} {
		t.Run(m.GroupVersionKind.Kind, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				simulated := memory.NewServer(apinames.Default, time.Now, memory.Kind{GroupVersionKind: m.GroupVersionKind, Custom: m != configMaps}).Connect()
				simulated.Send = func(_ context.Context, _ memory.Request, do func() error) error { return do() }
				name := unique("object")
				want := &subject{server: served, t: t, mapping: m, namespace: e.namespace, name: name}
				got := &subject{server: memoryServer{simulated}, t: t, mapping: m, namespace: e.namespace, name: name}
				for _, w := range rapid.SliceOfN(writes(key), 1, 25).Draw(rt, "writes") {
					rt.Log(w)
					if diff := cmp.Diff(want.do(w), got.do(w)); diff != "" {
						rt.Fatalf("the answers differ (-API server +memory): %v, %v\n%s", want.err, got.err, diff)
					}
				}
			})
		})
	}
}
