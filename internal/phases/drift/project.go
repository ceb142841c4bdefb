package drift

import (
	"slices"
	"strconv"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// Project returns the digest of the live values on the template's own paths.
// Two states of an object with the same projection need no apply in between.
// It tells drift only against a projection of the same template.
//
// What others add does not count: fields, labels, keys of a map, elements of an
// associative list or a set that the template does not name, wherever they
// stand. Lists that are not known to be associative or sets count as a whole,
// and so do maps that are owned as a whole. The order among the template's own
// elements counts, since apply restores it.
//
// Neither argument is changed. shapes may be nil: then every list is whole.
func Project(template, live map[string]any, shapes *KindShapes) objects.Digest {
	p := projector{encoder: encoders.Get().(*encoder), shapes: shapes}
	defer encoders.Put(p.encoder)
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
	return p.digest()
}

// missing stands for a value that the live object does not have. It is no JSON,
// so that no value is mistaken for it.
const missing = "~"

// projector walks a template beside the live object and appends what it finds.
// What it appends is clear together with the template alone.
type projector struct {
	*encoder
	shapes *KindShapes
	// place counts the values of the template.
	place int
}

// ignoredMetadata is set by the API server, guards a write, or is looked at in
// another way.
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

// metadataField is about labels and annotations mostly, of which the template's
// keys count.
func (p *projector) metadataField(key string, template, live any) {
	values, isMap := template.(map[string]any)
	if !isMap {
		p.scalar(template, live)
		return
	}
	liveValues, _ := live.(map[string]any)
	start, end := p.sorted(values)
	for i := start; i < end; i++ {
		if name := p.keys[i]; key != "annotations" || name != corev1alpha1.RevisionAnnotation {
			p.scalar(values[name], liveValues[name])
		}
	}
	p.keys = p.keys[:start]
}

// scalar appends a live value as it is.
func (p *projector) scalar(template, live any) {
	switch {
	case template == nil:
		return
	case live == nil:
		p.buf = append(p.buf, missing...)
	default:
		p.encoder.value(live)
	}
	p.buf = append(p.buf, ',')
}

// controller appends what the live object has of the template's controller
// reference. References of others come and go.
func (p *projector) controller(template, live any) {
	want := controllerOf(template)
	if want == nil {
		return
	}
	got := ownerWith(live, want["uid"])
	if got == nil {
		p.buf = append(p.buf, missing...)
		return
	}
	group, _, _ := strings.Cut(text(got["apiVersion"]), "/")
	for _, part := range []string{group, text(got["kind"]), text(got["name"]), text(got["uid"])} {
		p.text(part)
	}
	p.buf = strconv.AppendBool(p.buf, got["controller"] == true)
}

func text(value any) string {
	result, _ := value.(string)
	return result
}

// controllerOf returns the owner reference with controller=true, or nil.
func controllerOf(references any) map[string]any {
	list, _ := references.([]any)
	for _, element := range list {
		if reference, _ := element.(map[string]any); reference["controller"] == true {
			return reference
		}
	}
	return nil
}

func ownerWith(references, uid any) map[string]any {
	list, _ := references.([]any)
	for _, element := range list {
		if reference, _ := element.(map[string]any); reference != nil && reference["uid"] == uid {
			return reference
		}
	}
	return nil
}

// value appends what the live object has where the template has a value.
func (p *projector) value(path pathID, template, live any) {
	p.place++
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
	if (live != nil && !isMap) || p.shapes.whole(path) {
		p.all(live, len(template) == 0)
		return
	}
	start, end := p.sorted(template)
	for i := start; i < end; i++ {
		key := p.keys[i]
		p.value(field(path, key), template[key], fields[key])
	}
	p.keys = p.keys[:start]
}

// all appends a live value whole. An empty one is none. Where the template has an
// empty one too, none leaves no trace: an empty list or map looks as if it were
// owned as a whole, until others add to it.
func (p *projector) all(live any, emptyTemplate bool) {
	if isEmpty(live) {
		if !emptyTemplate {
			p.buf = append(p.buf, ',')
		}
		return
	}
	if emptyTemplate {
		p.buf = append(strconv.AppendInt(append(p.buf, '@'), int64(p.place), 10), ':')
	}
	p.encoder.value(live)
	p.buf = append(p.buf, ',')
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
	shape, known := p.shapes.list(path)
	values, isList := live.([]any)
	switch {
	case (live != nil && !isList) || !known:
		p.all(live, len(template) == 0)
	case len(template) == 0:
	case shape.keys == nil:
		p.set(template, live)
	case !allKeyed(template, shape.keys):
		p.all(live, false)
	default:
		p.associative(path, template, values, shape.keys)
	}
}

// set appends which of the template's values are in the live set.
func (p *projector) set(template, live any) {
	values, _ := template.([]any)
	liveValues, _ := live.([]any)
	for _, value := range values {
		if slices.ContainsFunc(liveValues, func(other any) bool { return same(value, other) }) {
			p.buf = append(p.buf, '+')
		} else {
			p.buf = append(p.buf, missing...)
		}
	}
	p.buf = append(p.buf, ',')
}

func (p *projector) associative(path pathID, template, live []any, keys []string) {
	path = field(path, elements)
	finder := finder{live: live, keys: keys}
	ordered, last := true, -1
	for _, element := range template {
		element := element.(map[string]any)
		p.buf = append(p.buf, '[')
		for n, i := range finder.find(element) {
			p.buf = append(p.buf, '{')
			p.value(path, element, live[i])
			if n == 0 {
				ordered, last = ordered && i > last, i
			}
		}
		p.buf = append(p.buf, ']')
	}
	if !ordered {
		p.order(template, &finder)
	}
}

// order appends the order of the template's elements in the live list where it
// is not the template's: without the places of foreign elements between them.
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
