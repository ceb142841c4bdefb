package memory

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.run/lockstep/internal/objects"
)

// DefaultOf returns the field that the server sets along with a field of Kind.Union.
func DefaultOf(field string) string { return field + "Default" }

// setDefaults sets the default for an object's field of a union, just as the strategy of a
// Deployment gets the parameters of a rolling update.
func (s *Server) setDefaults(key objects.Key, obj *unstructured.Unstructured) {
	spec, _ := obj.Object["spec"].(map[string]any)
	for _, name := range s.kinds[key.GroupKind()].Union {
		if _, has := spec[name]; has && spec[DefaultOf(name)] == nil {
			spec[DefaultOf(name)] = "default"
		}
	}
}

// validate refuses an object with two fields of a union, and a default for a field that it lacks.
func (s *Server) validate(key objects.Key, obj *unstructured.Unstructured) error {
	spec, _ := obj.Object["spec"].(map[string]any)
	path, first := field.NewPath("spec"), ""
	var wrong field.ErrorList
	for _, name := range s.kinds[key.GroupKind()].Union {
		_, has := spec[name]
		_, hasDefault := spec[DefaultOf(name)]
		switch {
		case has && first != "":
			wrong = append(wrong, field.Forbidden(path.Child(name), "may not be specified when "+first+" is"))
		case has:
			first = name
		case hasDefault:
			wrong = append(wrong, field.Forbidden(path.Child(DefaultOf(name)), "may not be specified without "+name))
		}
	}

	if len(wrong) == 0 {
		return nil
	}

	return apierrors.NewInvalid(key.GroupKind(), key.Name, wrong)
}
