package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
)

func (s *simulation) losses(ctx context.Context) []DataLoss {
	var found []DataLoss
	for _, key := range sortedKeys(s.objects) {
		o := s.objects[key]
		if o.live == nil {
			continue
		}
		replaced := o.now != nil && o.now.GetUID() != o.live.GetUID()
		switch {
		case (o.now == nil || replaced) && !o.released && o.changed:
			if text := s.deletion(ctx, key, o.live); text != "" {
				found = append(found, DataLoss{objectName(key), text})
			}
		case key.GroupKind() == statefulSetKind && o.now != nil:
			if text := scaledDown(o.live.Object, o.now.Object); text != "" {
				found = append(found, DataLoss{objectName(key), text})
			}
		case key.GroupKind() == crdKind && o.now != nil:
			for _, text := range definitionLosses(definitionOf(o.live), definitionOf(o.now)) {
				found = append(found, DataLoss{objectName(key), text})
			}
		}
	}
	return found
}

func objectName(key objects.Key) string {
	key.Group = ""
	return key.String()
}

// deletion describes the data that is deleted with an object; empty for those without.
func (s *simulation) deletion(ctx context.Context, key objects.Key, live *unstructured.Unstructured) string {
	switch key.GroupKind() {
	case crdKind:
		return s.resourcesGo(ctx, definitionOf(live))
	case schema.GroupKind{Kind: "Namespace"}:
		return "everything in the namespace goes with it"
	case statefulSetKind:
		if retention(live.Object, "whenDeleted") == "Delete" {
			return "the claims that it made go with it, by spec.persistentVolumeClaimRetentionPolicy"
		}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return "its volume is released, and deleted where its reclaim policy says so"
	case schema.GroupKind{Kind: "PersistentVolume"}:
		return "what it stores may go with it"
	}
	return ""
}

var statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}

func retention(set map[string]any, when string) string {
	policy, _, _ := unstructured.NestedString(set, "spec", "persistentVolumeClaimRetentionPolicy", when)
	return policy
}

// scaledDown describes the claims that a StatefulSet with fewer replicas deletes.
func scaledDown(before, after map[string]any) string {
	was, had, _ := unstructured.NestedInt64(before, "spec", "replicas")
	is, has, _ := unstructured.NestedInt64(after, "spec", "replicas")
	claims, _, _ := unstructured.NestedSlice(after, "spec", "volumeClaimTemplates")
	if !had || !has || is >= was || len(claims) == 0 || retention(after, "whenScaled") != "Delete" {
		return ""
	}
	return fmt.Sprintf("the claims of the replicas beyond %d go with them, by spec.persistentVolumeClaimRetentionPolicy", is)
}

// resourcesGo counts the objects that are deleted with their definition.
func (s *simulation) resourcesGo(ctx context.Context, crd *definition) string {
	plural := crd.Spec.Names.Plural
	list, served, err := s.resources(ctx, crd, 1)
	switch {
	case !served:
		return ""
	case err != nil:
		return "all " + plural + " go with it"
	}
	switch n := int64(len(list.Items)) + ptr.Deref(list.RemainingItemCount, 0); n {
	case 0:
		return ""
	case 1:
		return "the only object of it goes with it"
	default:
		return fmt.Sprintf("all %d %s go with it", n, plural)
	}
}

// resources lists the metadata of the custom resources of a definition, which may not be
// served.
func (s *simulation) resources(ctx context.Context, crd *definition, limit int64) (list *metav1.PartialObjectMetadataList, served bool, err error) {
	err = s.whileServed(ctx, func() error {
		mapping, err := s.Mapper.RESTMapping(kindOf(crd))
		if err != nil {
			served = false
			return nil // of such a kind nothing is known
		}
		served = true
		list, err = s.Metadata.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: limit})
		return err
	})
	return list, served, err
}

func definitionLosses(before, after *definition) []string {
	var found []string
	lose := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	type version = apiextensionsv1.CustomResourceDefinitionVersion
	for _, v := range slices.SortedFunc(slices.Values(before.Spec.Versions), func(a, b version) int { return cmp.Compare(a.Name, b.Name) }) {
		switch {
		case !slices.ContainsFunc(after.Spec.Versions, func(is version) bool { return is.Name == v.Name }):
			lose("version %s is dropped: clients that use it fail, and objects cannot be read in it any more", v.Name)
		case v.Served && !apihelpers.HasServedCRDVersion(after, v.Name):
			lose("version %s is not served any more: clients that use it fail", v.Name)
		}
		found = append(found, schemaLosses(v.Name, schemaOf(before, v.Name), schemaOf(after, v.Name))...)
	}
	was, errWas := apihelpers.GetCRDStorageVersion(before)
	is, errIs := apihelpers.GetCRDStorageVersion(after)
	if errWas == nil && errIs == nil && was != is {
		lose("objects are stored in version %s instead of %s from now on: fields that it does not have go with their next write", is, was)
	}
	for _, field := range [][3]string{
		{"spec.scope", string(before.Spec.Scope), string(after.Spec.Scope)},
		{"spec.names.kind", before.Spec.Names.Kind, after.Spec.Names.Kind},
		{"spec.names.plural", before.Spec.Names.Plural, after.Spec.Names.Plural},
	} {
		if field[1] != field[2] {
			lose("%s changes from %s to %s: existing objects are not found any more", field[0], field[1], field[2])
		}
	}
	return found
}

// fieldsNamed bounds how many fields of one version are named.
const fieldsNamed = 20

// schemaLosses returns the fields that leave a schema: the API server prunes them.
func schemaLosses(version string, before, after *apiextensionsv1.JSONSchemaProps) []string {
	var all []pruned
	dropped(before, after, "", &all, 0)
	slices.SortFunc(all, func(a, b pruned) int { return cmp.Compare(a.path, b.path) })
	var found []string
	for i, p := range all {
		switch {
		case i == fieldsNamed:
			return append(found, fmt.Sprintf("%d more fields of %s leave the schema", len(all)-i, version))
		case p.unnamed:
			found = append(found, fmt.Sprintf("what %s has that the schema of %s does not name is kept no more: such values are pruned", p.path, version))
		default:
			found = append(found, fmt.Sprintf("field %s leaves the schema of %s: its values are pruned", p.path, version))
		}
	}
	return found
}

// pruned is a field that leaves a schema, or one that preserved unknown fields before.
type pruned struct {
	path    string
	unnamed bool
}

func dropped(before, after *apiextensionsv1.JSONSchemaProps, path string, found *[]pruned, depth int) {
	if before == nil || after == nil || ptr.Deref(after.XPreserveUnknownFields, false) || depth > limits.FieldsDepth {
		return
	}
	if ptr.Deref(before.XPreserveUnknownFields, false) {
		*found = append(*found, pruned{cmp.Or(path, "."), true})
	}
	for name, old := range before.Properties {
		at := path + "." + name
		if now, stays := after.Properties[name]; stays {
			dropped(&old, &now, at, found, depth+1)
		} else if after.AdditionalProperties == nil {
			*found = append(*found, pruned{at, false})
		}
	}
	if before.Items != nil && after.Items != nil {
		dropped(before.Items.Schema, after.Items.Schema, path+"[]", found, depth+1)
	}
	if before.AdditionalProperties != nil && after.AdditionalProperties != nil {
		dropped(before.AdditionalProperties.Schema, after.AdditionalProperties.Schema, path+".*", found, depth+1)
	}
}
