package drift

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/listkeys"
)

// Implied computes the object that a template implies for a live object: the template plus the
// fields of other managers that it does not state. It leaves out fields that the engine owns and
// the template lacks, and fields without a manager, which the API server defaults again. The result
// is sent as an update if a server-side apply is refused or leaves fields behind.
//
// Metadata and status keep fields without a manager, because these are never defaults. Associative
// lists with elements keep them, too, because a webhook may have added an element when the object
// was created.
type Implied struct {
	template, live map[string]any
	types          *ListTypes
	ours           *fieldpath.Set
	others         []share
	// installers are the fields of installers to take over.
	installers []share
	// open are the template's empty maps and lists that the API server drops. They state nothing,
	// so other managers' fields below them stay.
	open    map[pathID]bool
	yielded []string
	tried   attempt
	// first is the state before any field yielded; nil if none did.
	first *attempt
	// fresh is a new object of the template, as in the API server's answer to its creation.
	fresh map[string]any
	// former are the templates that were applied before.
	former []any
	// unowned means that fields without a manager stay everywhere, as in a server-side apply.
	unowned bool
}

// share has the fields of one manager.
type share struct {
	manager string
	// fixed means that the fields do not yield, because they belong to a subresource, such as the
	// replicas that an autoscaler sets through scale.
	fixed   bool
	fields  *fieldpath.Set
	written time.Time
}

// Imply returns the Implied of a template with its guards. adopting means that fields of installers
// count as the engine's, as in [Migration]. types are the types of the live object. An error means
// that managedFields are unreadable.
func Imply(names *objects.Names, template map[string]any, live *unstructured.Unstructured, adopting bool, types *ListTypes) (*Implied, error) {
	m := &Implied{template: template, live: live.Object, types: types, ours: fieldpath.NewSet(), open: map[pathID]bool{}}
	for key := range template {
		m.open[field(rootPath, key)] = true // an object with an empty spec leaves it to others
	}

	for _, entry := range live.GetManagedFields() {
		fields, err := Fields(entry)
		if err != nil {
			return nil, err
		}
		switch {
		case isUpdate(names, &entry), isApply(names, &entry), formerController(template, &entry):
			m.ours = m.ours.Union(fields)
		case adopting && isInstaller(names, &entry):
			left := leftToInstaller(fields, template, nil)
			m.ours = m.ours.Union(fields.Difference(left))
			m.others = append(m.others, share{manager: entry.Manager, fields: left})
			m.installers = append(m.installers, share{manager: entry.Manager, fixed: true, fields: fields})
		default:
			written := ptr.Deref(entry.Time, metav1.Time{}).Time
			m.others = append(m.others, share{manager: entry.Manager, fixed: entry.Subresource != "", fields: fields, written: written})
		}
	}

	return m, nil
}

// formerController reports whether a controller of Kubernetes wrote the fields on behalf of a field
// that the template no longer has.
func formerController(template map[string]any, entry *metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(objects.ControllerFields, func(f objects.ControllerField) bool {
		return f.Kind.Kind == template["kind"] && f.Manager == entry.Manager && f.While != nil && !f.While(template)
	})
}

// AsApplied keeps fields without a manager. The object is then the result of a server-side apply on
// migrated managedFields, before defaults.
func (m *Implied) AsApplied() *Implied {
	m.unowned = true
	return m
}

// After sets the templates that were applied before. Their empty maps and lists are removed
// together with them, even if another manager owns them: managedFields keep naming the manager that
// filled such a field, even after the engine has emptied it.
func (m *Implied) After(templates []map[string]any) {
	for _, template := range templates {
		m.former = append(m.former, template)
	}
}

// Object returns the object as computed so far. The caller can modify it.
func (m *Implied) Object() map[string]any {
	others := fieldpath.NewSet()
	for _, s := range m.others {
		others = others.Union(s.fields)
	}
	return m.mapping(rootPath, m.template, m.live, keeper{others: others, ours: m.ours, unowned: m.unowned, fresh: m.fresh, former: m.former})
}

// Fresh keeps the fields that a new object of the template has with the same value. Admission may
// have set them at creation and does not set them again at an update, such as the default class of
// an Ingress. It reports whether the object changes.
func (m *Implied) Fresh(fresh map[string]any) bool {
	before := m.Object()
	m.fresh = fresh
	return !equality.Semantic.DeepEqual(before, m.Object())
}

// Yielded returns the sorted managers whose fields Yield left out.
func (m *Implied) Yielded() []string {
	slices.Sort(m.yielded)
	return slices.Compact(m.yielded)
}

// Open keeps other managers' fields below empty maps and lists of the template if the answer to an
// update lacks these. The API server drops them, so they state nothing. Fields that yielded are put
// back then, because the emptied ones may have been the conflict, as a mount without its volume. It
// reports whether the object changes.
func (m *Implied) Open(answer map[string]any) bool {
	changed := false
	emptied(rootPath, m.template, m.live, answer, func(path pathID) {
		changed = changed || !m.open[path]
		m.open[path] = true
	})
	if changed && m.first != nil {
		m.others, m.ours, m.yielded = m.first.others, m.first.ours, m.first.yielded
		m.tried, m.first = attempt{}, nil
	}
	return changed
}

// emptied calls visit for each empty map or list of a template that a live object fills and that
// the answer to its update lacks.
func emptied(path pathID, template, live, answer any, visit func(pathID)) {
	switch template := template.(type) {
	case map[string]any:
		if len(template) == 0 {
			break
		}
		now, _ := live.(map[string]any)
		after, _ := answer.(map[string]any)
		for key, v := range template {
			emptied(field(path, key), v, now[key], after[key], visit)
		}
		return
	case []any:
		now, _ := live.([]any)
		after, _ := answer.([]any)
		for i := range min(len(template), len(now), len(after)) {
			emptied(field(path, elements), template[i], now[i], after[i], visit)
		}
		if len(template) > 0 {
			return
		}
	default:
		return
	}

	if !isEmpty(live) && answer == nil {
		visit(path)
	}
}

// keeper decides which fields in one part of a live object stay.
type keeper struct {
	others, ours *fieldpath.Set
	unowned      bool
	// fresh is the same part of a new object; nil if unknown.
	fresh any
	// former are the same part of former templates.
	former []any
}

func (k keeper) below(element fieldpath.PathElement) keeper {
	path := fieldpath.Path{element}
	fresh, _ := lookup(k.fresh, path)
	var former []any
	for _, template := range k.former {
		if below, has := lookup(template, path); has {
			former = append(former, below)
		}
	}

	return keeper{others: childSet(k.others, element), ours: childSet(k.ours, element), unowned: k.unowned, fresh: fresh, former: former}
}

// emptied reports whether a value is an empty map or list of a former template.
func (k keeper) emptied(live any) bool {
	return isEmpty(live) && slices.ContainsFunc(k.former, func(before any) bool { return before != nil && isEmpty(before) })
}

// owned reports whether another manager owns the element itself.
func (k keeper) owned(element fieldpath.PathElement) bool {
	return k.others != nil && k.others.Members.Has(element)
}

// keeps reports whether the element itself stays, regardless of its content.
func (k keeper) keeps(element fieldpath.PathElement) bool {
	return k.owned(element) || k.unowned && (k.ours == nil || !k.ours.Members.Has(element))
}

func childSet(set *fieldpath.Set, element fieldpath.PathElement) *fieldpath.Set {
	if set == nil {
		return nil
	}
	below, has := set.Children.Get(element)
	if !has {
		return nil
	}
	return below
}

var (
	metadataPath   = field(rootPath, "metadata")
	statusPath     = field(rootPath, "status")
	finalizersPath = field(metadataPath, "finalizers")
	ownersPath     = field(metadataPath, "ownerReferences")
	replicasPath   = field(field(rootPath, "spec"), "replicas")
)

func (m *Implied) mapping(path pathID, template, live map[string]any, k keeper) map[string]any {
	out := make(map[string]any, len(template))
	for key, v := range template {
		if v != nil { // null states that the field is absent
			at := field(path, key)
			out[key] = m.value(at, v, live[key], m.keeper(at, k.below(named(key))))
		}
	}

	for key, v := range live {
		if _, stated := template[key]; stated {
			continue
		}
		if kept, ok := m.kept(field(path, key), v, m.keeper(path, k), named(key)); ok {
			out[key] = kept
		}
	}

	return out
}

// keeper returns the keeper of the part at a path.
func (m *Implied) keeper(path pathID, k keeper) keeper {
	k.unowned = k.unowned || path == metadataPath || path == statusPath
	return k
}

func named(key string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &key} }

// value returns a value of the template with others' fields below it.
func (m *Implied) value(path pathID, template, live any, k keeper) any {
	switch t := template.(type) {
	case map[string]any:
		fields, isMap := live.(map[string]any)
		switch {
		case !isMap, m.types.whole(path), len(t) == 0 && !m.open[path] && !k.unowned:
			fields = nil
		}
		return m.mapping(path, t, fields, k)
	case []any:
		elements, isList := live.([]any)
		if isList && (len(t) > 0 || m.open[path] || k.unowned) {
			return m.list(path, t, elements, k)
		}
	}

	return runtime.DeepCopyJSONValue(template)
}

// kept returns the part of a live value that stays although the template does not state it.
func (m *Implied) kept(path pathID, live any, parent keeper, element fieldpath.PathElement) (any, bool) {
	k := m.keeper(path, parent.below(element))
	if k.emptied(live) {
		return nil, false
	}

	whole := parent.keeps(element) && k.others == nil && k.ours == nil
	_, number := live.(int64)
	// The live number of replicas stays if the template does not state one: an autoscaler or a user
	// can have set it.
	if whole || path == replicasPath && number || k.fresh != nil && same(live, k.fresh) {
		return runtime.DeepCopyJSONValue(live), true
	}

	switch live := live.(type) {
	case map[string]any:
		out := m.mapping(path, nil, live, k)
		return out, len(out) > 0
	case []any:
		out := m.list(path, nil, live, k)
		return out, len(out) > 0
	}

	return live, parent.keeps(element)
}

// shape returns how the elements of a list are identified.
func (m *Implied) shape(path pathID) (list, bool) {
	switch path {
	case finalizersPath:
		return list{}, true
	case ownersPath:
		return list{keys: []string{"uid"}}, true
	}
	return m.types.list(path)
}

// list returns the elements of the template, merged with live elements of the same identity, and
// the elements that others added. Each of the latter stays behind the element that it follows now.
func (m *Implied) list(path pathID, template, live []any, k keeper) []any {
	shape, known := m.shape(path)
	if !known || shape.keys != nil && !allKeyed(template, shape.keys) {
		return runtime.DeepCopyJSONValue(template).([]any)
	}

	out := make([]any, 0, len(template))
	places := map[int]int{} // of live elements in out
	finder := finder{live: live, keys: shape.keys}
	for _, element := range template {
		at := -1
		if shape.keys == nil {
			at = slices.IndexFunc(live, func(other any) bool { return same(element, other) })
		} else if found := finder.all(element.(map[string]any), true); len(found) > 0 {
			at = found[0]
		}
		if at < 0 {
			out = append(out, runtime.DeepCopyJSONValue(element))
			continue
		}
		places[at] = len(out)
		out = append(out, m.value(field(path, elements), element, live[at], k.below(elementOf(live[at], shape.keys))))
	}

	after := -1
	for i := range live {
		if at, has := places[i]; has {
			after = at
			continue
		}
		kept, ok := m.element(field(path, elements), live[i], k, elementOf(live[i], shape.keys), shape.keys)
		if !ok {
			continue
		}
		after++
		out = slices.Insert(out, after, kept)
		for other, at := range places {
			if at >= after {
				places[other] = at + 1
			}
		}
	}

	return out
}

// element returns a live element that the template lacks, if it stays: another manager owns the
// element itself and not just a field in it, or no manager does.
func (m *Implied) element(path pathID, live any, parent keeper, element fieldpath.PathElement, keys []string) (any, bool) {
	ours := parent.ours != nil && (parent.ours.Members.Has(element) || childSet(parent.ours, element) != nil)
	if !parent.owned(element) && (ours || childSet(parent.others, element) != nil) {
		return nil, false
	}
	if !parent.owned(element) {
		return runtime.DeepCopyJSONValue(live), true
	}

	fields, isMap := live.(map[string]any)
	k := parent.below(element)
	if !isMap || k.others == nil {
		return runtime.DeepCopyJSONValue(live), true
	}

	out := m.mapping(path, nil, fields, k)
	for _, key := range keys {
		out[key] = fields[key]
	}

	return out, true
}

// elementOf returns the path element of an element of a list.
func elementOf(element any, keys []string) fieldpath.PathElement {
	if keys == nil {
		v := value.NewValueInterface(element)
		return fieldpath.PathElement{Value: &v}
	}

	fields, _ := element.(map[string]any)
	var list value.FieldList
	for _, key := range keys {
		v := fields[key]
		if v == nil {
			v = listkeys.Default(key)
		}
		if v != nil {
			list = append(list, value.Field{Name: key, Value: value.NewValueInterface(v)})
		}
	}

	list.Sort()
	return fieldpath.PathElement{Key: &list}
}
