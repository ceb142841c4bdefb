package objectsets

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"lockstep.run/lockstep/internal/objects"
)

// NameProblem validates the name of an object, and the group, version and kind, because a slash in
// these parts of a request's path would address another resource. It is empty if they are valid. The
// API server checks the further rules of a kind.
func NameProblem(gvk schema.GroupVersionKind, key objects.Key) string {
	if errs := validation.IsDNS1123Subdomain(gvk.Group); gvk.Group != "" && len(errs) > 0 {
		return fmt.Sprintf("%.100q is not a valid API group: %s", gvk.Group, errs[0])
	}
	if errs := validation.IsDNS1035Label(gvk.Version); len(errs) > 0 {
		return fmt.Sprintf("%.100q is not a valid API version: %s", gvk.Version, errs[0])
	}
	if errs := validation.IsDNS1035Label(strings.ToLower(gvk.Kind)); len(errs) > 0 {
		return fmt.Sprintf("%.100q is not a valid kind: %s", gvk.Kind, errs[0])
	}
	if errs := validation.IsDNS1123Label(key.Namespace); key.Namespace != "" && len(errs) > 0 {
		return fmt.Sprintf("%.100q is not a valid namespace: %s", key.Namespace, errs[0])
	}
	if len(key.Name) > validation.DNS1123SubdomainMaxLength {
		return fmt.Sprintf("metadata.name has %d characters; the limit is %d", len(key.Name), validation.DNS1123SubdomainMaxLength)
	}
	if errs := content.IsPathSegmentName(key.Name); len(errs) > 0 {
		return fmt.Sprintf("%.100q is not a valid name: %s", key.Name, errs[0])
	}

	return ""
}

// Stores reports whether name is valid for a slice. Sets from before the CRD validated names can
// have invalid ones.
func Stores(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
