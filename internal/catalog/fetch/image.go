package fetch

import (
	"context"
	"errors"
	"strings"

	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/registry"
)

// image resolves the reference, and pulls the image if it is not known.
func (f *Fetcher) image(ctx context.Context, s Source, known string) (*Result, error) {
	if f.opts.Puller == nil {
		return nil, permanent("", "image: images cannot be pulled here")
	}
	spec := s.Spec.Image
	folder, err := cleanSubPath("image.subPath", spec.SubPath)
	if err != nil {
		return nil, err
	}
	access := registry.Access{Namespace: s.Namespace, Keychain: s.Keychain, Own: s.OwnOnly, Selection: f.imageFiles(folder)}
	puller := f.opts.Puller.With(access)
	ref, tag := spec.Ref, ""
	if spec.TagSelection != nil {
		tags, err := puller.Tags(ctx, ref)
		if err != nil {
			return nil, pullError(err)
		}
		if tag, err = versions.Highest(*spec.TagSelection, tags); err != nil {
			return nil, permanent("", "image.tagSelection: %v", err)
		}
		ref = repositoryOf(ref) + ":" + tag
	}
	digest, err := puller.Resolve(ctx, ref)
	if err != nil {
		return nil, pullError(err)
	}
	if digest == known {
		return &Result{NotModified: true}, nil
	}
	repository := repositoryOf(ref)
	var image *registry.Image
	err = s.inRoom(func(room int64) (err error) {
		access.Room = room
		image, err = f.opts.Puller.With(access).Pull(ctx, repository+"@"+digest)
		return err
	})
	if err != nil {
		return nil, pullError(err)
	}
	relocated, err := Relocate(ctx, puller, repository, digest, image.Files)
	if err != nil {
		return nil, err
	}
	files, err := choose(relocated, "image.subPath", folder)
	if err != nil {
		return nil, err
	}
	revision := digest
	if tag != "" {
		revision = tag + "@" + digest
	}
	return &Result{Files: files, Revision: revision, Validator: digest}, nil
}

func (f *Fetcher) imageFiles(folder string) *archive.Selection {
	return &archive.Selection{
		Keep:    func(p string) bool { return p == loader.ImagesLock || keeps(p, folder) },
		Entries: limits.RepositoryEntries, Files: limits.RepositoryFiles, Bytes: f.opts.Bytes,
	}
}

// repositoryOf is a reference without tag and digest.
func repositoryOf(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		ref = ref[:i]
	}
	return ref
}

// pullError turns an error of package registry into one of this package.
func pullError(err error) error {
	var failed *registry.PullError
	if !errors.As(err, &failed) {
		return err
	}
	return &Error{Details: err.Error(), Permanent: !failed.Temporary, Err: failed}
}
