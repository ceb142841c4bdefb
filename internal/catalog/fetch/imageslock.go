package fetch

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"regexp"
	"strings"

	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/registry"
)

// imagesLock lists the images of a bundle (https://carvel.dev/imgpkg/docs/latest/resources/#imgpkg-images).
const imagesLock = ".imgpkg/images.yml"

// locked matches image references by digest.
var locked = regexp.MustCompile(`[0-9A-Za-z][0-9A-Za-z._:/-]*@(sha256:[0-9a-f]{64})`)

// relocate returns the files of a bundle with the references to its images as they are after its relocation: all images of
// a bundle that was copied are in its own repository.
func relocate(ctx context.Context, puller *registry.Puller, repository, digest string, files archive.Files) (archive.Files, error) {
	lock, ok := files[imagesLock]
	if !ok {
		return files, nil
	}
	files = maps.Clone(files)
	delete(files, imagesLock)
	digests := lockedDigests(lock)
	if len(digests) == 0 {
		return files, nil
	}
	copied, err := wasCopied(ctx, puller, repository, digest)
	if err != nil || !copied {
		return files, err
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

func lockedDigests(lock []byte) map[string]bool {
	digests := map[string]bool{}
	for _, m := range lockedImage.FindAllSubmatch(lock, -1) {
		digests[string(m[1])] = true
	}
	return digests
}

// wasCopied reports whether the repository of a bundle holds the list of image locations that a copy leaves there.
func wasCopied(ctx context.Context, puller *registry.Puller, repository, digest string) (bool, error) {
	_, err := puller.Resolve(ctx, repository+":"+strings.Replace(digest, ":", "-", 1)+".image-locations.imgpkg")
	var failed *registry.PullError
	if errors.As(err, &failed) && failed.Reason == registry.ReasonNotFound {
		return false, nil
	}
	return err == nil, pullError(err)
}
