package definitions

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// Losses returns the versions and fields that a changed definition removes.
func Losses(before, after *CRD) []string {
	var found []string
	lose := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	type version = apiextensionsv1.CustomResourceDefinitionVersion

	for _, v := range slices.SortedFunc(slices.Values(before.Spec.Versions), func(a, b version) int { return cmp.Compare(a.Name, b.Name) }) {
		switch {
		case !slices.ContainsFunc(after.Spec.Versions, func(is version) bool { return is.Name == v.Name }):
			lose("version %s is dropped: clients that use it fail, and objects can no longer be read in it", v.Name)
		case v.Served && !apihelpers.HasServedCRDVersion(after, v.Name):
			lose("version %s is no longer served: clients that use it fail", v.Name)
		}
		found = append(found, schemaLosses(v.Name, schemaOf(before, v.Name), schemaOf(after, v.Name))...)
	}

	// A definition without a storage version is invalid, and the API server refuses it.
	was, errWas := apihelpers.GetCRDStorageVersion(before)
	is, errIs := apihelpers.GetCRDStorageVersion(after)
	if errWas == nil && errIs == nil && was != is {
		lose("objects are stored in version %s instead of %s from now on: fields that it does not have are lost with the next write", is, was)
	}

	return found
}

// fieldsNamed limits the named fields of one version.
const fieldsNamed = 20

// schemaLosses returns the fields that are removed from a schema. The API server prunes them.
func schemaLosses(version string, before, after *apiextensionsv1.JSONSchemaProps) []string {
	var all []pruned
	dropped(before, after, "", &all)
	slices.SortFunc(all, func(a, b pruned) int { return cmp.Compare(a.path, b.path) })
	var found []string
	for i, p := range all {
		switch {
		case i == fieldsNamed:
			return append(found, fmt.Sprintf("%d more fields of %s leave the schema", len(all)-i, version))
		case p.unnamed:
			found = append(found, fmt.Sprintf("values in %s that the schema of %s does not name are no longer kept: they are pruned", p.path, version))
		default:
			found = append(found, fmt.Sprintf("field %s leaves the schema of %s: its values are pruned", p.path, version))
		}
	}

	return found
}

// pruned is a field that is removed from a schema, or a field that preserved unknown fields before.
type pruned struct {
	path    string
	unnamed bool
}

// dropped collects the fields that a schema names before and not after. A field that stays as an
// additional property is kept.
func dropped(before, after *apiextensionsv1.JSONSchemaProps, path string, found *[]pruned) {
	if before == nil || after == nil || ptr.Deref(after.XPreserveUnknownFields, false) {
		return
	}
	if ptr.Deref(before.XPreserveUnknownFields, false) {
		*found = append(*found, pruned{cmp.Or(path, "."), true})
	}

	for name, old := range before.Properties {
		at := path + "." + name
		if now, stays := after.Properties[name]; stays {
			dropped(&old, &now, at, found)
		} else if after.AdditionalProperties == nil {
			*found = append(*found, pruned{at, false})
		}
	}

	if before.Items != nil && after.Items != nil {
		dropped(before.Items.Schema, after.Items.Schema, path+"[]", found)
	}
	if before.AdditionalProperties != nil && after.AdditionalProperties != nil {
		dropped(before.AdditionalProperties.Schema, after.AdditionalProperties.Schema, path+".*", found)
	}
}
