package drift

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/listkeys"
)

// Project returns the digest of the live values on the template's own paths. Two states of an
// object with the same projection need no apply in between. It is comparable only with a projection
// of the same template.
//
// Additions by others do not count: fields, labels, keys of a map, and elements of an associative
// list or a set that the template does not name. Lists are compared as a whole unless they are
// known to be associative or sets, as are maps that are owned as a whole. The order among the
// template's own elements counts, because apply restores it.
//
// It changes neither argument. If types is nil, every list counts as a whole.
func Project(names *objects.Names, template, live map[string]any, types *ListTypes) objects.Digest {
	p := projector{encoder: encoders.Get().(*encoder), names: names, types: types}
	defer encoders.Put(p.encoder)
	p.object(template, live)
	return p.digest()
}

// Converted returns the template for projecting a live object in another version than the
// template's. The template's paths are meaningless there, so all of the content counts. The
// projection therefore also changes with fields that the template does not name.
func Converted(template, live map[string]any) map[string]any {
	converted := maps.Clone(live)
	converted["metadata"] = template["metadata"]
	return converted
}

// Matches reports whether the live object has every value of the template as written, so that an
// apply would not change the template's paths. False means "unknown": values that the API server
// normalises, such as quantities, or leaves out, such as zero values, have another digest. Lists
// must have the same length unless they are known to be associative or sets. Additional fields in
// their elements are defaults, unless another manager has written to the object and may have added
// them.
//
// It changes neither argument. types can be nil.
func Matches(names *objects.Names, template, live map[string]any, types *ListTypes) bool {
	p := projector{encoder: encoders.Get().(*encoder), names: names, types: types, matching: true}
	defer encoders.Put(p.encoder)
	p.object(template, live)
	p.release()
	return !p.differs && !(p.more && hasOtherWriter(names, live))
}

// hasOtherWriter reports whether managedFields of an object name a manager of the object itself
// other than the engine.
func hasOtherWriter(names *objects.Names, live map[string]any) bool {
	return slices.ContainsFunc(ManagedFields(&unstructured.Unstructured{Object: live}), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "" && !isApply(names, &entry) && !isUpdate(names, &entry)
	})
}

// missing represents a value that the live object does not have. It is not valid JSON, so it cannot
// be mistaken for a value.
const missing = "~"

// projector walks the template and the live object in parallel, and appends the live values. They
// are unambiguous only together with the template. When matching, it compares both instead.
type projector struct {
	*encoder
	names             *objects.Names
	types             *ListTypes
	matching, differs bool
	// more means that an element of a list that is owned as a whole has more fields than in the
	// template.
	more bool
	// place counts the values of the template. depth counts the values that contain the current
	// one, and wholes the lists among them that are owned as a whole.
	place, depth, wholes int
}

func (p *projector) object(template, live map[string]any) {
	p.buf = p.buf[:0]
	start, end := p.sorted(template)
	for i := start; i < end; i++ {
		switch key := p.keys[i]; key {
		case "status":
		case "metadata":
			metadata, _ := template[key].(map[string]any)
			liveMetadata, _ := live[key].(map[string]any)
			p.metadata(metadata, liveMetadata)
		default:
			p.value(field(rootPath, key), template[key], live[key])
		}
	}
}

// ignoredMetadata reports whether a field is set by the API server, guards a write, or is compared
// separately.
func ignoredMetadata(key string) bool {
	switch key {
	case "creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink", "ownerReferences":
		return true
	}
	return false
}

func (p *projector) metadata(template, live map[string]any) {
	start, end := p.sorted(template)
	for i := start; i < end; i++ {
		switch key := p.keys[i]; {
		case key == "ownerReferences":
			p.controller(template[key], live[key])
		case ignoredMetadata(key):
		case key == "finalizers":
			p.set(template[key], live[key])
		default:
			p.metadataField(key, template[key], live[key])
		}
	}

	p.keys = p.keys[:start]
}

// metadataField appends metadata, mostly labels or annotations.
func (p *projector) metadataField(key string, template, live any) {
	values, isMap := template.(map[string]any)
	if !isMap {
		p.scalar(template, live)
		return
	}

	liveValues, _ := live.(map[string]any)
	start, end := p.sorted(values)
	for i := start; i < end; i++ {
		if name := p.keys[i]; key != "annotations" || name != p.names.RevisionAnnotation && name != p.names.AdoptedAnnotation {
			p.scalar(values[name], liveValues[name])
		}
	}

	p.keys = p.keys[:start]
}

// scalar appends a live value unchanged.
func (p *projector) scalar(template, live any) {
	switch {
	case template == nil:
		return
	case p.matching:
		p.differs = p.differs || !same(template, live)
	case live == nil:
		p.buf = append(p.buf, missing...)
	default:
		p.encoder.value(live)
	}

	p.buf = append(p.buf, ',')
}

// controller appends the live object's part of the template's controller reference.
func (p *projector) controller(template, live any) {
	want := ownerWith(template, "controller", true)
	if want == nil {
		return
	}

	got := ownerWith(live, "uid", want["uid"])
	if p.matching {
		p.differs = p.differs || got["controller"] != true || referenceOf(got) != referenceOf(want)
		return
	}
	if got == nil {
		p.buf = append(p.buf, missing...)
		return
	}

	for _, part := range referenceOf(got) {
		p.text(part)
	}

	p.buf = strconv.AppendBool(p.buf, got["controller"] == true)
}

// referenceOf returns the identity of an owner, which excludes its version.
func referenceOf(owner map[string]any) [4]string {
	group, _, _ := strings.Cut(text(owner["apiVersion"]), "/")
	return [4]string{group, text(owner["kind"]), text(owner["name"]), text(owner["uid"])}
}

func text(value any) string {
	result, _ := value.(string)
	return result
}

// ownerWith returns the first owner reference with the value in a field, or nil.
func ownerWith(references any, field string, value any) map[string]any {
	list, _ := references.([]any)
	for _, element := range list {
		if reference, _ := element.(map[string]any); reference != nil && reference[field] == value {
			return reference
		}
	}
	return nil
}

// value appends the live part of a value of the template.
func (p *projector) value(path pathID, template, live any) {
	p.place++
	p.depth++
	defer func() { p.depth-- }()
	switch template := template.(type) {
	case map[string]any:
		p.mapping(path, template, live)
	case []any:
		p.list(path, template, live)
	default:
		p.scalar(template, live)
	}
}

func (p *projector) mapping(path pathID, template map[string]any, live any) {
	fields, isMap := live.(map[string]any)
	switch {
	case len(template) == 0 && (live == nil || isMap):
		p.empty(live, len(fields))
		return
	case live != nil && !isMap, len(fields) > 0 && p.types.whole(path): // if others fill an empty map, its parts can be owned
		p.all(template, live)
		return
	}

	p.more = p.more || p.wholes > 0 && len(fields) > len(template)
	start, end := p.sorted(template)
	for i := start; i < end; i++ {
		key := p.keys[i]
		p.value(field(path, key), template[key], fields[key])
	}

	p.keys = p.keys[:start]
}

// empty appends whether the live object has an empty map or list of the template, and whether
// others have filled it. An empty map can be an alternative of a union, such as emptyDir: {}. An
// empty field of the object itself, such as its spec, leaves the content to others.
func (p *projector) empty(live any, fields int) {
	switch {
	case p.depth == 1:
	case p.matching:
		p.differs = p.differs || live == nil || fields > 0
	case live == nil:
		p.buf = append(p.buf, missing...)
	case fields > 0:
		p.buf = append(p.buf, '+')
	}
}

// all appends a live value as a whole. An empty value is treated as absent. If the template's value
// is empty as well, absence leaves no trace, because an empty list or map seems to be owned as a
// whole until others add to it.
func (p *projector) all(template, live any) {
	if live != nil && isEmpty(template) && isEmpty(live) && reflect.TypeOf(template) != reflect.TypeOf(live) {
		p.empty(live, 1) // a map is not a list
		return
	}
	if p.matching {
		p.differs = p.differs || !exactly(template, live)
		return
	}

	if isEmpty(live) {
		if !isEmpty(template) {
			p.buf = append(p.buf, ',')
		}
		return
	}

	if isEmpty(template) {
		p.buf = append(strconv.AppendInt(append(p.buf, '@'), int64(p.place), 10), ':')
	}

	p.encoder.value(live)
	p.buf = append(p.buf, ',')
}

// exactly compares values that are owned as a whole. The API server defaults the version of a
// fieldRef to v1.
func exactly(template, live any) bool {
	if isEmpty(template) || isEmpty(live) {
		return isEmpty(template) && isEmpty(live)
	}

	switch template := template.(type) {
	case map[string]any:
		fields, isMap := live.(map[string]any)
		for key, value := range fields {
			if !exactly(template[key], value) && !(key == "apiVersion" && value == "v1" && template["fieldPath"] != nil) {
				return false
			}
		}
		for key, value := range template {
			if fields[key] == nil && !isEmpty(value) {
				return false
			}
		}
		return isMap
	case []any:
		values, isList := live.([]any)
		return isList && slices.EqualFunc(template, values, exactly)
	default:
		return same(template, live)
	}
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	default:
		return false
	}
}

func (p *projector) list(path pathID, template []any, live any) {
	shape, known := p.types.list(path)
	values, isList := live.([]any)
	path = field(path, elements)
	switch {
	case live != nil && !isList:
		p.all(template, live)
	case !known || shape.keys != nil && !allKeyed(template, shape.keys):
		p.wholeList(path, template, live)
	case len(template) == 0:
		p.empty(live, len(values))
	case shape.keys == nil:
		p.set(template, live)
	default:
		p.associative(path, template, values, shape.keys)
	}
}

// wholeList appends a list that is owned as a whole. When matching, elements can have more fields
// than the template, which the API server defaulted.
func (p *projector) wholeList(path pathID, template []any, whole any) {
	live, _ := whole.([]any)
	if len(template) == 0 && len(live) == 0 {
		p.empty(whole, 0)
		return
	}
	if !p.matching {
		p.all(template, whole)
		return
	}
	if len(template) != len(live) {
		p.differs = true
		return
	}

	p.wholes++
	for i := range template {
		p.value(path, template[i], live[i])
	}

	p.wholes--
}

// set appends which of the template's values the live set has.
func (p *projector) set(template, live any) {
	values, _ := template.([]any)
	liveValues, _ := live.([]any)
	for _, value := range values {
		if slices.ContainsFunc(liveValues, func(other any) bool { return same(value, other) }) {
			p.buf = append(p.buf, '+')
		} else {
			p.buf = append(p.buf, missing...)
			p.differs = true
		}
	}

	p.buf = append(p.buf, ',')
}

func (p *projector) associative(path pathID, template, live []any, keys []string) {
	finder := finder{live: live, keys: keys}
	ordered, last := true, -1
	for _, element := range template {
		element := element.(map[string]any)
		p.buf = append(p.buf, '[')
		found := finder.find(element)
		p.differs = p.differs || len(found) == 0
		for n, i := range found {
			p.buf = append(p.buf, '{')
			p.impliedKeys(element, live[i].(map[string]any), keys)
			p.value(path, element, live[i])
			if n == 0 {
				ordered, last = ordered && i > last, i
			}
		}
		p.buf = append(p.buf, ']')
	}

	if !ordered {
		p.differs = true
		p.order(template, &finder)
	}
}

// impliedKeys appends the live values of keys that the template leaves out because the API server
// defaults them. For example, a port that was changed to UDP has drifted.
func (p *projector) impliedKeys(template, live map[string]any, keys []string) {
	for _, key := range keys {
		if template[key] != nil || live[key] == nil {
			continue
		}
		if p.matching {
			p.differs = p.differs || !same(live[key], listkeys.Default(key))
			continue
		}
		p.encoder.value(live[key])
	}
}

// order appends the order of the template's elements in the live list.
func (p *projector) order(template []any, finder *finder) {
	type place struct{ live, template int }
	var places []place
	for n, element := range template {
		if found := finder.find(element.(map[string]any)); len(found) > 0 {
			places = append(places, place{found[0], n})
		}
	}

	slices.SortFunc(places, func(a, b place) int { return a.live - b.live })
	for _, at := range places {
		p.buf = append(strconv.AppendInt(append(p.buf, '#'), int64(at.template), 10), ',')
	}
}
