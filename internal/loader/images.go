package loader

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

const statusImagesBytes = 8 << 10 // limit of the images in a status, as JSON: a quarter of it

// lockedImages are the images of a lock by the references that templates see.
type lockedImages map[string]corev1alpha1.PackageImage

// lockedImages returns the images of the lock. refs are their references by name.
func (l *load) lockedImages(refs map[string]string) lockedImages {
	lock := l.unit.result.Lock
	if lock == nil || l.opts.StaticImages {
		return nil
	}

	out := lockedImages{}
	l.rewritten = map[string]bool{}
	for _, img := range lock.Spec.Images {
		image := img.Image
		written, _, _ := strings.Cut(image, "@")
		// The status shows the registry that the image is pulled from, so the override applies here
		// as well.
		if l.opts.ImageOverride != nil {
			image = l.opts.ImageOverride(image)
		}
		image, _, _ = strings.Cut(image, "@")
		if image != written {
			l.rewritten[RepositoryOf(image)] = true
		}
		_, digest, _ := strings.Cut(refs[img.Name], "@")
		// If two names have the same locked image, the first by name wins, in any order of the
		// lock.
		if first, twice := out[refs[img.Name]]; digest != "" && (!twice || img.Name < first.Name) {
			out[refs[img.Name]] = corev1alpha1.PackageImage{Name: img.Name, Image: image, Digest: digest}
		}
	}

	return out
}

// imageField is a field that names the image of a container or of an image volume.
type imageField struct {
	of        map[string]any
	key, text string
	user      map[string]any
	kind      string
}

// imagesOf rewrites the images of containers and image volumes once each. It returns all images
// that the object names, except the lock's, which are already rewritten.
func (c *check) imagesOf() []string {
	fields := imageFields(c.out.gvk.GroupKind(), c.body)
	out := make([]string, len(fields))
	for i := range fields {
		f := &fields[i]
		// It is cut if it is too long to show, and a copy, so that it does not keep the document in
		// memory.
		out[i] = strings.Clone(f.text[:min(len(f.text), limits.ReferenceBytes+1)])
		neverPulled := f.of["imagePullPolicy"] == "Never" || f.of["pullPolicy"] == "Never"
		// Images of the lock were rewritten when templates got them, and a second rewrite could hit
		// the result of the first.
		if c.r.opts.Rewrite == nil || len(f.text) > limits.ReferenceBytes || neverPulled || c.r.isRewritten(f.text) {
			continue
		}
		ref := c.r.opts.Rewrite(f.text)
		if ref != f.text && c.r.secrets.Is(f.text) {
			// A rewritten image would contain only part of the value, so messages would no longer
			// recognize and hide it.
			name, _ := f.user["name"].(string)
			c.warn(violation.ReasonSecretExposed, "", "Write it as a plain one.", "the image of the %s %s is a value that came from a Secret, and is not rewritten as ImageConfigs say",
				f.kind, name[:min(len(name), limits.LineBytes)])
			continue
		}
		f.of[f.key], out[i] = ref, ref
	}

	return out
}

// imageFields returns the image fields of the containers and image volumes of a Pod, or of an
// object with a template of Pods. It knows the place for Kubernetes' own kinds, and looks into
// spec.template of all others.
func imageFields(kind schema.GroupKind, body map[string]any) []imageField {
	path := []string{"spec", "template", "spec"}
	switch kind {
	case schema.GroupKind{Kind: "Pod"}:
		path = []string{"spec"}
	case schema.GroupKind{Kind: "PodTemplate"}:
		path = []string{"template", "spec"}
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	// A Secret has no images, and its values must not get into a status.
	case secretKind:
		return nil
	}

	pod := body
	for _, key := range path {
		// Reading a nil map gives nil, so a missing step ends in an object without images.
		pod, _ = pod[key].(map[string]any)
	}

	var out []imageField
	add := func(of map[string]any, key, kind string, user map[string]any) {
		if text, _ := of[key].(string); text != "" {
			out = append(out, imageField{of: of, key: key, text: text, user: user, kind: kind})
		}
	}

	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range mappings(pod[list]) {
			add(container, "image", strings.TrimSuffix(strings.Replace(list, "initC", "init c", 1), "s"), container)
		}
	}

	for _, volume := range mappings(pod["volumes"]) {
		image, _ := volume["image"].(map[string]any)
		add(image, "reference", "volume", volume)
	}

	return out
}

func isDigest(text string) bool {
	_, err := v1.NewHash(text)
	return err == nil
}

// mappings returns the mappings in a list, and skips other items, which the API server refuses
// later.
func mappings(v any) []map[string]any {
	items, _ := v.([]any)
	var out []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// usedImages returns the images of containers and of the lock, like reportedImages.
func (l *load) usedImages(objects []*object) (images []corev1alpha1.PackageImage, omitted int) {
	refs := map[string]bool{}
	for ref := range l.locked {
		refs[ref] = true
	}
	for _, o := range objects {
		for _, image := range o.images {
			refs[image] = true
		}
	}
	return reportedImages(refs, l.locked, func(ref string) bool { return l.secrets.Is(ref) })
}

// ImagesOf returns the images that rendered objects name, in the form of a status, and the number
// of omitted ones.
func ImagesOf(all []map[string]any) (images []corev1alpha1.PackageImage, omitted int) {
	refs := map[string]bool{}
	for _, o := range all {
		version, _ := o["apiVersion"].(string)
		kind, _ := o["kind"].(string)
		for _, field := range imageFields(schema.FromAPIVersionAndKind(version, kind).GroupKind(), o) {
			refs[field.text] = true
		}
	}
	return reportedImages(refs, nil, func(string) bool { return false })
}

// reportedImages returns as many images as a status has room for, sorted, and the number of omitted
// ones. Sensitive text, and text that is too long for a reference, is only counted.
func reportedImages(refs map[string]bool, locked map[string]corev1alpha1.PackageImage, sensitive func(string) bool) (images []corev1alpha1.PackageImage, omitted int) {
	var all []corev1alpha1.PackageImage
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if image, ok := locked[ref]; ok {
			all = append(all, image)
		} else if len(ref) > limits.ReferenceBytes || sensitive(ref) {
			omitted++
		} else if image, digest, _ := strings.Cut(ref, "@"); isDigest(digest) {
			all = append(all, corev1alpha1.PackageImage{Image: image, Digest: digest})
		} else {
			all = append(all, corev1alpha1.PackageImage{Image: ref})
		}
	}

	slices.SortStableFunc(all, func(a, b corev1alpha1.PackageImage) int {
		return cmp.Or(cmp.Compare(a.Image, b.Image), cmp.Compare(a.Digest, b.Digest))
	})
	// The number alone does not bound the status, because references can have hundreds of bytes.
	size := 0
	for i, image := range all {
		text, _ := json.Marshal(image) // strings can always be encoded
		if size += len(text) + 1; i == limits.StatusImages || size > statusImagesBytes {
			return all[:i:i], omitted + len(all) - i
		}
	}

	return all, omitted
}
