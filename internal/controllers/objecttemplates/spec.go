package objecttemplates

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objectsets"
)

// plan is a spec whose sources are valid, regardless of the APIs that the cluster serves.
type plan struct {
	sources []plannedSource
	// err is the fault of the sources; nil if there is none.
	err error
}

// plannedSource is a source of a plan.
type plannedSource struct {
	ref sources.Ref
	// namespace is the spec's, or by default the template's; the ref of a cluster-scoped kind has
	// none.
	namespace string
	optional  bool
	items     []item
	// field is the path of the source in the spec.
	field string
}

// item is one value of a source.
type item struct {
	field       string
	key         key
	destination []string
}

// secret reports whether values of the source are of a Secret.
func (s *plannedSource) secret() bool { return s.ref.GroupKind() == schema.GroupKind{Kind: "Secret"} }

// planOf checks and compiles the sources of a template, which is self.
func planOf(spec *corev1alpha1.ObjectTemplateSpec, self objects.Owner) *plan {
	p := &plan{}
	if n := len(spec.Sources); n > limits.ObjectTemplateSources {
		p.err = fmt.Errorf("spec.sources has %d entries; the limit is %d: use several templates", n, limits.ObjectTemplateSources)
		return p
	}

	var problems []error
	items := 0
	for i := range spec.Sources {
		source, errs := planSource(&spec.Sources[i], fmt.Sprintf("spec.sources[%d]", i), self)
		p.sources, problems = append(p.sources, source), append(problems, errs...)
		items += len(source.items)
	}

	if items > limits.ObjectTemplateItems {
		problems = append(problems, fmt.Errorf("the sources have %d items; the limit is %d: use several templates", items, limits.ObjectTemplateItems))
	}

	p.err = errors.Join(problems...)
	return p
}

// planSource checks a source and compiles its items. An ObjectTemplate reads only its own
// namespace, because the manager's rights reach further than its author's.
func planSource(s *corev1alpha1.ObjectTemplateSource, field string, self objects.Owner) (plannedSource, []error) {
	source := plannedSource{
		ref: sources.Ref{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}, namespace: s.Namespace, optional: s.Optional, field: field,
	}
	gv, err := schema.ParseGroupVersion(s.APIVersion)
	if err != nil {
		return source, []error{fmt.Errorf("%s.apiVersion: %w", field, err)}
	}

	source.ref.Group, source.ref.Version = gv.Group, gv.Version
	key := objects.Key{Group: gv.Group, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
	if problem := objectsets.NameProblem(gv.WithKind(s.Kind), key); problem != "" {
		return source, []error{fmt.Errorf("%s: %s", field, problem)}
	}

	if self.Namespace != "" {
		if s.Namespace != "" && s.Namespace != self.Namespace {
			return source, []error{fmt.Errorf("%s.namespace: an ObjectTemplate reads its own namespace only: remove it, or use a ClusterObjectTemplate", field)}
		}
		source.namespace, source.ref.Namespace = self.Namespace, self.Namespace
	}

	if gv.Group == corev1alpha1.GroupName && s.Kind == self.Kind && s.Name == self.Name {
		return source, []error{fmt.Errorf("%s: the template itself cannot be a source", field)}
	}

	var problems []error
	for i := range s.Items {
		one, err := planItem(&s.Items[i], fmt.Sprintf("%s.items[%d]", field, i))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		source.items = append(source.items, one)
	}

	return source, problems
}

// planItem compiles one item: the key to read, and the path to write to.
func planItem(i *corev1alpha1.ObjectTemplateSourceItem, field string) (item, error) {
	key, err := compileKey(i.Key)
	if err != nil {
		return item{}, fmt.Errorf("%s.key: %w", field, err)
	}

	path, begins := strings.CutPrefix(i.Destination, ".")
	destination := strings.Split(path, ".")
	for _, part := range destination {
		if !begins || part == "" {
			return item{}, fmt.Errorf("%s.destination: %.100q has to be a path below .config, such as .database.host", field, i.Destination)
		}
	}

	if len(destination) > limits.TemplateValueDepth {
		return item{}, fmt.Errorf("%s.destination: it has %d parts; the limit is %d", field, len(destination), limits.TemplateValueDepth)
	}
	return item{field: field, key: key, destination: destination}, nil
}

// scopes returns the refs to watch, and the sources that do not fit the scopes of their kinds as
// they are served now.
func (p *plan) scopes(self objects.Owner, namespaced func(schema.GroupKind) (namespaced, known bool)) ([]sources.Ref, error) {
	var refs []sources.Ref
	var problems []error
	for i := range p.sources {
		s := &p.sources[i]
		s.ref.Namespace = s.namespace
		switch in, known := namespaced(s.ref.GroupKind()); {
		case known && !in && self.Namespace != "":
			problems = append(problems, fmt.Errorf("%s: %s is cluster-scoped, and an ObjectTemplate reads its own namespace only: use a ClusterObjectTemplate",
				s.field, s.ref.GroupKind()))
			continue
		case known && !in:
			s.ref.Namespace = ""
		case known && s.ref.Namespace == "":
			problems = append(problems, fmt.Errorf("%s.namespace: it is required because %s is namespaced", s.field, s.ref.GroupKind()))
			continue
		}
		refs = append(refs, s.ref)
	}

	return sources.Sorted(refs), errors.Join(problems...)
}

// kinds returns the kinds of the sources.
func (p *plan) kinds() []schema.GroupKind {
	kinds := make([]schema.GroupKind, 0, len(p.sources))
	for i := range p.sources {
		kinds = append(kinds, p.sources[i].ref.GroupKind())
	}
	return kinds
}
