package fetch

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/registry"
)

// locked matches image references by digest.
var locked = regexp.MustCompile(`[0-9A-Za-z][0-9A-Za-z._:/-]*@(sha256:[0-9a-f]{64})`)

// Relocate returns the files of a bundle with their images replaced as kbld and imgpkg do: images
// that the manifests name get the digests of the lock. Since all images of a copied bundle are in
// its own repository, references to them change accordingly. pulled is the repository in the
// address it is pulled from, and repository the one to write. Files without a lock stay unchanged.
func Relocate(ctx context.Context, puller *registry.Puller, pulled, repository, digest string, files archive.Files) (archive.Files, error) {
	lock, ok := files[loader.ImagesLock]
	if !ok {
		return files, nil
	}

	files = maps.Clone(files)
	delete(files, loader.ImagesLock)
	digests := map[string]bool{} // also of images without kbld's annotation
	for _, m := range lockedImage.FindAllSubmatch(lock, -1) {
		digests[string(m[1])] = true
	}
	if len(digests) == 0 {
		return files, nil
	}

	if images := lockedImages(lock); len(images) > 0 {
		for p, data := range files {
			files[p] = imageValue.ReplaceAllFunc(data, func(found []byte) []byte {
				parts := imageValue.FindSubmatch(found)
				ref, ok := images[string(parts[3])]
				if !ok {
					return found
				}
				return slices.Concat(parts[1], parts[2], []byte(ref))
			})
		}
	}

	// A copy leaves the list of image locations in the repository of a bundle.
	_, err := puller.Resolve(ctx, pulled+":"+strings.Replace(digest, ":", "-", 1)+".image-locations.imgpkg")
	var failed *registry.PullError
	if errors.As(err, &failed) && failed.Reason == registry.ReasonNotFound {
		return files, nil
	}
	if err != nil {
		return files, pullError(err)
	}

	for p, data := range files {
		files[p] = locked.ReplaceAllFunc(data, func(ref []byte) []byte {
			if digest := string(ref[bytes.LastIndexByte(ref, '@')+1:]); digests[digest] {
				return []byte(repository + "@" + digest)
			}
			return ref
		})
	}

	return files, nil
}

// lockedImage matches a line of the list.
var lockedImage = regexp.MustCompile(`(?m)^[ \t]*(?:-[ \t]+)?image:[ \t]*["']?[0-9A-Za-z][0-9A-Za-z._:/-]*@(sha256:[0-9a-f]{64})\b`)

// lockedImages returns the references in a list by the names that manifests use. An unreadable list
// has none.
func lockedImages(lock []byte) map[string]string {
	images := map[string]string{}
	_ = document.Each(loader.ImagesLock, lock, func(d *document.Document) {
		m, _ := d.Value.(map[string]any)
		list, _ := m["images"].([]any)
		for _, item := range list {
			image, _ := item.(map[string]any)
			ref, _ := image["image"].(string)
			annotations, _ := image["annotations"].(map[string]any) // with the name that manifests use
			if id, _ := annotations["kbld.carvel.dev/id"].(string); id != "" && locked.FindString(ref) == ref && ref != "" {
				images[id] = ref
			}
		}
	})

	return images
}

// imageValue matches an image key with its value, as kbld does.
var imageValue = regexp.MustCompile(`(^|[\s{,])(["']?image["']?:[ \t]*["']?)([^\s"',}\]#]+)`)
