package drift

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/listkeys"
)

// HasUpdates reports whether managedFields have an Update entry of the engine. [Migration] has to
// rewrite it before other content is applied, because it would keep fields that leave the template.
func HasUpdates(names *objects.Names, managedFields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managedFields, func(entry metav1.ManagedFieldsEntry) bool { return isUpdate(names, &entry) })
}

// HasApply reports whether managedFields have an Apply entry of the engine.
func HasApply(names *objects.Names, managedFields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managedFields, func(entry metav1.ManagedFieldsEntry) bool { return isApply(names, &entry) })
}

// IsStale reports whether managedFields have an entry in a version that is no longer served. The
// API server answers every apply with 500 until [Migration] has rewritten it. served takes an
// apiVersion such as apps/v1; nil means that every version is served.
func IsStale(managedFields []metav1.ManagedFieldsEntry, served func(apiVersion string) bool) bool {
	return slices.ContainsFunc(managedFields, func(entry metav1.ManagedFieldsEntry) bool { return isStale(&entry, served) })
}

// isUpdate reports whether the entry comes from a POST of the engine, or from an earlier engine.
func isUpdate(names *objects.Names, entry *metav1.ManagedFieldsEntry) bool {
	return entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" &&
		(entry.Manager == names.FieldManager || slices.Contains(names.FormerFieldManagers, entry.Manager))
}

func isApply(names *objects.Names, entry *metav1.ManagedFieldsEntry) bool {
	return entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" &&
		entry.Manager == names.FieldManager
}

func isStale(entry *metav1.ManagedFieldsEntry, served func(string) bool) bool {
	return served != nil && entry.APIVersion != "" && !served(entry.APIVersion)
}

// Origin describes the writers of an object before it is applied.
type Origin struct {
	// Templates are the templates of revisions that might have written the object.
	Templates []map[string]any
	// Next is the template that is applied next. Adopting means that this adopts the object.
	Next     map[string]any
	Adopting bool
	// Kept are immutable fields, such as spec.scopes. Installers keep their fields at or below them
	// that Next lacks.
	Kept []string
	// Served reports whether a version such as apps/v1 is served; nil means that all are.
	Served func(apiVersion string) bool
}

// concerns reports whether there might be something to migrate.
func (o *Origin) concerns(names *objects.Names, entries []metav1.ManagedFieldsEntry) bool {
	return HasUpdates(names, entries) || IsStale(entries, o.Served) || o.Adopting && HasInstaller(names, entries) ||
		!hasPath(o.Next, replicas, false) && OwnsReplicas(names, entries)
}

// replicas is the field that scales workloads. If it leaves the template, the number stays, because
// an autoscaler takes over from there and owns the field only after it has changed it.
var replicas = fieldpath.MakePathOrDie("spec", "replicas")

// OwnsReplicas reports whether managedFields have an entry of the engine with spec.replicas.
func OwnsReplicas(names *objects.Names, managedFields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(managedFields, func(entry metav1.ManagedFieldsEntry) bool {
		if !isApply(names, &entry) && !isUpdate(names, &entry) || entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:replicas"`)) {
			return false
		}
		fields, err := Fields(entry)
		return err == nil && fields.Has(replicas)
	})
}

// Migration returns a JSON patch that turns the engine's entries of live into one Apply entry.
// Fields of Update entries stay only if a template has them, so that the next apply does not remove
// values that the API server defaulted. Owner references stay as well, so that the next apply
// removes references to earlier owners. Other managers' entries in a version that is no longer
// served are moved to the version of live. At adoption the entries of installers are taken over
// entirely, including Apply entries, which client-go's util/csaupgrade leaves alone.
//
// live can be the response to a dry-run apply of the next template. The patch tests uid and
// resourceVersion, and changes only managedFields. needed is false if there is nothing to do. An
// error means that managedFields are unreadable.
func Migration(names *objects.Names, live *unstructured.Unstructured, from Origin) (jsonPatch []byte, needed bool, err error) {
	entries := live.GetManagedFields()
	if !from.concerns(names, entries) {
		return nil, false, nil
	}

	migrated, err := migrate(names, entries, live.GetAPIVersion(), from)
	if err != nil {
		return nil, false, fmt.Errorf("migrate managedFields of %s %s/%s: %w",
			live.GetKind(), live.GetNamespace(), live.GetName(), err)
	}

	jsonPatch, err = json.Marshal([]patchOperation{
		{"test", "/metadata/uid", live.GetUID()},
		{"test", "/metadata/resourceVersion", live.GetResourceVersion()},
		{"replace", "/metadata/managedFields", migrated},
	})

	return jsonPatch, err == nil, err
}

type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// migrate returns the entries of others, followed by the engine's.
func migrate(names *objects.Names, entries []metav1.ManagedFieldsEntry, liveVersion string, from Origin) ([]metav1.ManagedFieldsEntry, error) {
	own := metav1.ManagedFieldsEntry{
		Manager:    names.FieldManager,
		Operation:  metav1.ManagedFieldsOperationApply,
		APIVersion: liveVersion,
		FieldsType: "FieldsV1",
	}

	var others []metav1.ManagedFieldsEntry
	owned := fieldpath.NewSet()
	for _, entry := range entries {
		update, stale := isUpdate(names, &entry), isStale(&entry, from.Served)
		installer := from.Adopting && isInstaller(names, &entry)
		if stale {
			entry.APIVersion = liveVersion
		}
		if !update && !installer && !isApply(names, &entry) {
			others = append(others, entry)
			continue
		}
		fields, err := Fields(entry)
		if err != nil {
			return nil, err
		}
		switch {
		case installer:
			left := leftToInstaller(fields, from.Next, from.Kept)
			fields = fields.Difference(left)
			if !left.Empty() {
				if err := setFields(&entry, left); err != nil {
					return nil, err
				}
				others = append(others, entry)
			}
		case update || stale:
			fields = within(fields, from.Templates)
		}
		owned = owned.Union(fields)
		if own.Time == nil || own.Time.Before(entry.Time) {
			own.Time = entry.Time
		}
	}

	// An apply that drops an owned spec.replicas would reset it to its default, so the engine gives the
	// field up first.
	if !hasPath(from.Next, replicas, false) {
		owned = owned.Difference(fieldpath.NewSet(replicas))
	}
	if err := setFields(&own, storedAsData(owned)); err != nil {
		return nil, err
	}

	return append(others, own), nil
}

// storedAsData moves fields of a Secret's stringData to data, where the API server stores them. An
// apply of stringData owns the fields that it names, but not the stored ones.
func storedAsData(fields *fieldpath.Set) *fieldpath.Set {
	const from, to = "stringData", "data"
	if fields.WithPrefix(named(from)).Empty() {
		return fields
	}

	stored := fieldpath.NewSet()
	for path := range fields.All() {
		path = path.Copy()
		if isField(path[0], from) {
			path[0] = named(to)
		}
		stored.Insert(path)
	}

	return stored
}

func setFields(entry *metav1.ManagedFieldsEntry, fields *fieldpath.Set) error {
	text, err := fields.ToJSON()
	if err != nil {
		return err
	}
	entry.FieldsV1 = metav1.NewFieldsV1(string(text))
	return nil
}

// Fields returns the fields that an entry of managedFields owns.
func Fields(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("entry of %q: %w", entry.Manager, err)
	}
	return set, nil
}

// within returns the fields that at least one of the templates has.
func within(fields *fieldpath.Set, templates []map[string]any) *fieldpath.Set {
	kept := fieldpath.NewSet()
	for path := range fields.All() {
		has := func(template map[string]any) bool { return hasPath(template, path, false) }
		if isOwnerReference(path) || slices.ContainsFunc(templates, has) {
			kept.Insert(path.Copy())
		}
	}
	return kept
}

func isOwnerReference(path fieldpath.Path) bool {
	return len(path) > 1 && isField(path[0], "metadata") && isField(path[1], "ownerReferences")
}

func isField(element fieldpath.PathElement, name string) bool {
	return element.FieldName != nil && *element.FieldName == name
}

// hasPath reports whether a template has a value at a path of managedFields. null means that null,
// there or on the way, counts as one.
func hasPath(template any, path fieldpath.Path, null bool) bool {
	switch {
	case template == nil:
		return null
	case len(path) == 0:
		return true
	}

	element, rest := path[0], path[1:]
	if element.FieldName != nil {
		fields, _ := template.(map[string]any)
		child, has := fields[*element.FieldName]
		return has && hasPath(child, rest, null)
	}

	list, _ := template.([]any)
	return slices.ContainsFunc(list, func(candidate any) bool {
		return isElement(candidate, element) && hasPath(candidate, rest, null)
	})
}

// isElement reports whether a path element identifies this element of a list. The API server
// defaults a key that the template leaves out.
func isElement(candidate any, element fieldpath.PathElement) bool {
	switch {
	case element.Value != nil:
		return same(candidate, plain(*element.Value))
	case element.Key != nil:
		fields, isMap := candidate.(map[string]any)
		return isMap && !slices.ContainsFunc(*element.Key, func(key value.Field) bool {
			v := fields[key.Name]
			if v == nil {
				v = listkeys.Default(key.Name)
			}
			return v != nil && !same(v, plain(key.Value))
		})
	default:
		return false // an index: such lists are owned as a whole
	}
}

func plain(of value.Value) any {
	if of == nil {
		return nil
	}
	return of.Unstructured()
}

// Exceeds reports whether the Apply entry in managedFields shows that the engine has applied a
// field that the template lacks. Such a field belongs to a former content, and the next apply
// removes it. Owner references do not count, nor does an entry that is unreadable or in another
// version of the API.
func Exceeds(names *objects.Names, template map[string]any, managedFields []metav1.ManagedFieldsEntry) bool {
	exceeds := false
	for i := range managedFields {
		entry := &managedFields[i]
		if !isApply(names, entry) || entry.APIVersion != template["apiVersion"] {
			continue
		}
		fields, err := Fields(*entry)
		if err != nil {
			continue
		}
		for path := range fields.All() { // to the end, because the iterator does not support a break
			exceeds = exceeds || !isOwnerReference(path) && !hasPath(template, path, true)
		}
	}

	return exceeds
}
