package manifest

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"lockstep.run/lockstep/internal/loader/violation"
)

// updateRemedy is the remedy for all problems of a lock, because a command writes it.
const updateRemedy = "Run kubectl package update."

// validateLock compares the lock with the manifest. A lock that could not be decoded has its own
// problems.
func (r *Result) validateLock() violation.Violations {
	var problems violation.Violations
	add := func(v violation.Violation, remedy, format string, args ...any) {
		problems = append(problems, v.Because(remedy, format, args...))
	}
	images := r.Manifest.Spec.Images
	if r.lock == nil {
		if len(images) > 0 {
			add(r.At(violation.ReasonLockMissing, "spec.images"), updateRemedy, "the package has no manifest.lock.yaml")
		}
		return problems
	}

	if r.Lock == nil {
		return problems
	}

	locked := map[string]string{}
	for i, img := range r.Lock.Spec.Images {
		field := fmt.Sprintf("spec.images[%d]", i)
		for key, value := range map[string]string{"name": img.Name, "image": img.Image, "digest": img.Digest} {
			if value == "" {
				add(r.lock.At(violation.ReasonLockInvalid, field+"."+key), updateRemedy, "Required value")
			}
		}
		if img.Digest != "" {
			if _, err := v1.NewHash(withAlgorithm(img.Digest)); err != nil {
				add(r.lock.At(violation.ReasonLockInvalid, field+".digest"), updateRemedy, "%q is not a digest", img.Digest)
			} else if img.Digest != withAlgorithm(img.Digest) {
				v := r.lock.At(violation.ReasonLockInvalid, field+".digest").Because(updateRemedy, "%q does not start with sha256:", img.Digest)
				problems = append(problems, r.Doubtful(v)...)
			}
		}
		if _, twice := locked[img.Name]; twice {
			add(r.lock.At(violation.ReasonLockInvalid, field+".name"), "", "Duplicate value: %q", img.Name)
		}
		locked[img.Name] = img.Image
	}

	wanted := map[string]bool{}
	for i, img := range images {
		wanted[img.Name] = true
		field := fmt.Sprintf("spec.images[%d]", i)
		switch image, ok := locked[img.Name]; {
		case !ok:
			add(r.At(violation.ReasonLockImageMissing, field), updateRemedy, "image %q", img.Name)
		case image != img.Image:
			add(r.At(violation.ReasonLockImageDifferent, field+".image"), updateRemedy, "image %q is %q here and %q in the lock", img.Name, img.Image, image)
		}
	}

	for i, img := range r.Lock.Spec.Images {
		if img.Name != "" && !wanted[img.Name] {
			add(r.lock.At(violation.ReasonLockImageMissing, fmt.Sprintf("spec.images[%d].name", i)), updateRemedy, "image %q is in the lock and not in the manifest", img.Name)
		}
	}

	return problems
}

// Images returns .images and .dependencies of templates: references by digest, after override.
// Dependencies come from the lock only; the manifest has ranges for them.
func (r *Result) Images(override func(string) string) (images, dependencies map[string]string, problems violation.Violations) {
	images, dependencies = map[string]string{}, map[string]string{}
	if r.Lock == nil {
		return images, dependencies, nil
	}

	pin := func(into map[string]string, field, key, image, digest string) {
		if override != nil {
			image = override(image)
		}
		ref, err := pinned(image, digest)
		if err != nil {
			problems = append(problems, r.lock.At(violation.ReasonLockInvalid, field).Because(updateRemedy, "%v", err))
			return
		}
		into[key] = ref
	}

	for i, img := range r.Lock.Spec.Images {
		pin(images, fmt.Sprintf("spec.images[%d]", i), img.Name, img.Image, img.Digest)
	}

	for i, d := range r.Lock.Spec.Dependencies {
		pin(dependencies, fmt.Sprintf("spec.dependencies[%d]", i), d.Name, d.Image, d.Digest)
	}

	return images, dependencies, problems
}

// withAlgorithm completes a digest of a dependency, which Package Operator writes without the
// algorithm.
func withAlgorithm(digest string) string {
	if strings.Contains(digest, ":") {
		return digest
	}
	return "sha256:" + digest
}

// pinned joins the repository of a reference and a digest.
func pinned(image, digest string) (string, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", fmt.Errorf("%q is not a valid image reference", image)
	}
	digest = withAlgorithm(digest)
	if _, err := v1.NewHash(digest); err != nil {
		return "", fmt.Errorf("%q is not a digest", digest)
	}
	return ref.Context().Digest(digest).String(), nil
}
