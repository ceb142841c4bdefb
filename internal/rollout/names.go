package rollout

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"lockstep.run/lockstep/internal/objects"
)

// nameable says why no request can be about an object of that name; empty where one
// can. Group, kind, namespace and name are parts of a request's path: one with a
// slash in it would be a request about something else. What a kind asks of its names
// beyond that is the API server's to say.
func nameable(gvk schema.GroupVersionKind, key objects.Key) string {
	if errs := validation.IsDNS1123Subdomain(gvk.Group); gvk.Group != "" && len(errs) > 0 {
		return fmt.Sprintf("%.100q is no API group: %s", gvk.Group, errs[0])
	}
	if errs := validation.IsDNS1035Label(gvk.Version); len(errs) > 0 {
		return fmt.Sprintf("%.100q is no version of an API: %s", gvk.Version, errs[0])
	}
	if errs := validation.IsDNS1035Label(strings.ToLower(gvk.Kind)); len(errs) > 0 {
		return fmt.Sprintf("%.100q is no kind: %s", gvk.Kind, errs[0])
	}
	if errs := validation.IsDNS1123Label(key.Namespace); key.Namespace != "" && len(errs) > 0 {
		return fmt.Sprintf("%.100q is no namespace: %s", key.Namespace, errs[0])
	}
	if len(key.Name) > validation.DNS1123SubdomainMaxLength {
		return fmt.Sprintf("metadata.name has %d characters; the limit is %d", len(key.Name), validation.DNS1123SubdomainMaxLength)
	}
	if errs := content.IsPathSegmentName(key.Name); len(errs) > 0 {
		return fmt.Sprintf("%.100q is no name: %s", key.Name, errs[0])
	}
	return ""
}

// Stores reports whether something that holds objects of a revision can have that name.
// The API server refuses others in new sets; those of before may have them.
func Stores(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
