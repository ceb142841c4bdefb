package applies_test

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind of objects with the possible differences between two of its templates.
type kind struct {
	// name is the name of the kind, or of one of its variants.
	name string
	// base is the template as YAML. NAME in it is the name of the object.
	base       string
	dimensions []dimension
}

// dimension is a part of a template that has alternatives, such as the handler of a probe.
type dimension struct {
	name string
	// alternatives are assignments; an empty one omits the dimension.
	alternatives []string
	// byHand means that only edits choose alternatives other than the first one.
	byHand bool
	// manager is a controller that applies the alternatives; empty for edits by kubectl.
	manager string
}

func dim(name string, alternatives ...string) dimension {
	return dimension{name: name, alternatives: alternatives}
}

func hand(name string, alternatives ...string) dimension {
	return dimension{name: name, alternatives: append([]string{""}, alternatives...), byHand: true}
}

func controller(manager, name string, alternatives ...string) dimension {
	return dimension{name: name, alternatives: append([]string{""}, alternatives...), byHand: true, manager: manager}
}

// choice is the alternative of each dimension; missing dimensions have alternative 0.
type choice map[string]int

// template returns the object of a choice for a name.
func (k *kind) template(c choice, name string) map[string]any {
	object, ok := parse(strings.ReplaceAll(k.base, "NAME", name)).(map[string]any)
	if !ok {
		panic(k.name + ": the base is not an object")
	}
	for i := range k.dimensions {
		d := &k.dimensions[i]
		for _, a := range assignments(strings.ReplaceAll(d.alternatives[c[d.name]], "NAME", name)) {
			assign(object, a.path, a.value)
		}
	}
	return object
}

// edited changes one dimension of a live object to another alternative.
func (k *kind) edited(object map[string]any, dimension string, to int, name string) {
	d := k.dimension(dimension)
	for i, alternative := range d.alternatives {
		for _, a := range assignments(strings.ReplaceAll(alternative, "NAME", name)) {
			if i != to {
				erase(object, a.path)
			}
		}
	}
	for _, a := range assignments(strings.ReplaceAll(d.alternatives[to], "NAME", name)) {
		assign(object, a.path, a.value)
	}
}

func (k *kind) dimension(name string) *dimension {
	for i := range k.dimensions {
		if k.dimensions[i].name == name {
			return &k.dimensions[i]
		}
	}
	panic(k.name + " has no dimension " + name)
}

func gvkOf(object map[string]any) schema.GroupVersionKind {
	version, _ := object["apiVersion"].(string)
	name, _ := object["kind"].(string)
	return schema.FromAPIVersionAndKind(version, name)
}

// allKinds returns every kind.
func allKinds() []*kind {
	var all []*kind
	for _, some := range [][]*kind{workloads(), coreKinds(), networkKinds(), policyKinds(), clusterKinds(), customKinds(), recreatedKinds()} {
		all = append(all, some...)
	}
	for _, k := range all {
		k.dimensions = append(k.dimensions,
			dim("labels", "", "metadata/labels/app = shop", "metadata/labels/app = shop\nmetadata/labels/tier = front"),
			dim("annotations", "", "metadata/annotations/example.com~1note = first"),
			hand("foreign labels", "metadata/labels/team = blue", "metadata/labels/app = other"),
		)
		if k.name != "Pod" && !strings.HasSuffix(k.name, "/recreated") { // the finalizer would block their deletion
			k.dimensions = append(k.dimensions, hand("foreign finalizer", "metadata/finalizers = [example.com/hold]"))
		}
	}
	return all
}

func kindNamed(name string) *kind {
	for _, k := range allKinds() {
		if k.name == name {
			return k
		}
	}
	panic("no kind " + name)
}
